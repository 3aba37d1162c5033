"""Static storage: hashed names, also inside ES module imports, so that a deploy never mixes old and new modules."""

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage


class ModuleManifestStorage(ManifestStaticFilesStorage):
    support_js_module_import_aggregation = True
    # A pass settles one level of imports; Django's five are too few for our modules. A cycle still fails.
    max_post_process_passes = 20
