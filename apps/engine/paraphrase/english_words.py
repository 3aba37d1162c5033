"""English words that customers of shops use for one another. Pure data.

A line is a concept and what stands for it; inflected forms need not be listed. Words of no line mean only themselves.
"""

from __future__ import annotations

from apps.engine.paraphrase.meaning import listed

CONCEPTS = """
return: return, send back, give back, take back, bring back, ship back, mail back, post back, returnable, hand back
refund: refund, reimburse, reimbursement, money back, refundable, get money back, cash back
exchange: exchange, swap, trade, exchangeable
cancel: cancel, cancellation, call off
order: order, purchase
delivery: delivery, shipping, shipment
ship: ship, dispatch, ship out, send out
deliver: deliver, deliverable
send: send, send off
parcel: parcel, package
post: post, mail
repair: repair, fix, mend, patch, repairable, reparable
replace: replace, replacement
change: change, modify, edit, update, alter, amend, correct
remove: remove, take out, take off, get off, get rid, get out, rid
add: add, include
delete: delete, erase, close account
clean: clean, wash, cleanse
store: store
keep: keep, hold, hang on
buy: buy
pay: pay, payment
charge: charge, recharge
cost: cost, price, fee, charge fee, pricing
free: free, free of charge, no charge, at no cost, complimentary, for nothing
instalment: instalment, installment, instalment payment, installment payment, monthly payment
accept: accept, support
decline: decline, reject, refuse
warranty: warranty, guarantee, warranty claim, guarantee claim, under warranty, under guarantee
claim: claim, make claim, make warranty claim
cover: cover
exclude: exclude
expire: expire, run out, expiry, expiry date, expiration, expiration date
valid: valid, validity, good for, last
extend: extend, prolong, lengthen
use: use, redeem
balance: balance
lose: lose, misplace, lost, can not find, not find
damage: damage
break: break, broken, bust
fault: fault, defect, faulty, defective, flaw
missing: missing, incomplete
wrong: wrong, incorrect
arrive: arrive, come, turn up, show up, reach
offer: sell, offer, provide, stock, come in, carry in stock, available in
receive: receive
search: search, look for, trace
find: find, locate
hour: opening hour, business hour, opening time, store hour, shop hour, hour of opening, hour open, working hour
shop: shop, store front, outlet, branch
open: open
close: close, shut
phone: phone, telephone, phone number, telephone number, call number
human: human, real person, real human, person, human being, agent, human agent, live agent, representative
talk: talk, speak, chat
contact: contact, get in touch, get hold of, reach out
pickup: pick up, collect, pickup, pick up in store, click and collect, collection
address: address
account: account
email: email, email address
password: password, passcode
size: size
measure: measure
wide: wide, wide fit, wide feet, wide foot, wide size
narrow: narrow, slim fit
fit: fit
wear: wear, worn
try: try on, try
unused: unused, not use
recommend: recommend, suggest, advise, best, suitable, suit
size-between: between two size, between 2 size, in between two size, in between 2 size, fall between two size
break-in: break in, breaking in
dispose: dispose, dispose of, get rid of, throw away, discard
recycle: recycle
plane: plane, airplane, aeroplane, aircraft, flight
fly: fly
bring: bring, take along, take with
get: get, obtain
invoice: invoice, bill
method: method, option, way to pay, way of paying
currency: currency
interest: interest, interest charge
customs: customs, customs duty, customs fee, import duty, import tax, customs charge, duty, tariff
amount: amount, value, denomination, sum
benefit: benefit, advantage, perk, privilege
membership: membership, status, member
points: point, loyalty point, reward point
member-become: become member
waterproof: waterproof, reproof, proof
mould: mould, mold, mildew
photo: photo, picture, photograph, image
need: need, require
deadline: deadline, time limit, time frame, timeframe, cut off, cutoff
period: period, window, duration, length
reason: reason
condition: condition, state
postage: postage, return postage, return shipping, return shipping cost, shipping cost of return
spare: spare part, replacement part, spare
locker: parcel locker, locker, package locker
country: country, nation
customer: customer
enough: enough, suffice, sufficient
several: several, multiple, more than one, many
discount: discount, on sale, sale price, reduced price
normal: normal, usual, ordinary
large: large, big
old: old
new: new
seam: seam
""".strip()

# Say nothing about what is asked, in any kind of question.
IDLE = listed(
    """
a an the any some this that these those there here
i me my mine myself we us our you your yours yourself it its they them their theirs one
be do does did will would shall may might can could have has had having
and or but then also too just really actually simply exactly maybe perhaps still already yet now ever even
of in on at to for with by as into onto about via upon regarding concerning
if whether when while once that which who so
please kindly possible possibly allow allowed permit permitted ok okay fine able available
item product thing article stuff something anything somebody someone anybody anyone people guy
guys everyone folk bit little
like want wish happen go let give make
way properly fully
"""
)

ANTONYMS = (
    ("open", "close"), ("add", "remove"), ("wide", "narrow"), ("before", "after"), ("inside", "outside"),
    ("indoors", "outdoors"), ("large", "small"), ("old", "new"), ("with", "without"), ("cover", "exclude"),
    ("from", "to"), ("over", "under"), ("minimum", "maximum"), ("first", "last"), ("buy", "sell"), ("on", "off"),
    ("unused", "used"), ("cheap", "expensive"), ("early", "late"), ("send", "receive"), ("lose", "find"),
)  # fmt: skip

# What shops and customers do with goods and money: alike in form and neighbours in meaning, never each other.
DEALINGS = listed(
    "return refund exchange cancel order ship deliver repair replace change keep buy offer pay charge claim extend use"
    " receive pickup delete add remove clean store dispose recycle wear"
)
