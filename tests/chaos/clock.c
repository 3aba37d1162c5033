/* Shifts the wall clock of one process by the seconds written in the file CLOCK_SHIFT_FILE (a mapped double). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double shift_s(void)
{
    static volatile double *mapped;
    if (!mapped) {
        const char *path = getenv("CLOCK_SHIFT_FILE");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (file < 0)
            return 0;
        void *page = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (page == MAP_FAILED)
            return 0;
        mapped = page;
    }
    return *mapped;
}

static void shift(struct timespec *at)
{
    long long ns = at->tv_nsec + (long long)(shift_s() * 1e9);
    at->tv_sec += ns / 1000000000;
    at->tv_nsec = ns % 1000000000;
    if (at->tv_nsec < 0) {
        at->tv_nsec += 1000000000;
        at->tv_sec -= 1;
    }
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(at);
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
