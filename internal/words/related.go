package words

import (
	"slices"
	"strings"
)

// related are words that people use for each other in programming and in offices, a group a line. Recall looks
// for the others of a group too, at a share of a word's weight: a question is seldom asked in the words of its
// answer.
var related = strings.Split(strings.TrimSpace(`
deploy release ship rollout launch publish live
machine host server box node instance computer vm hardware
price fee cost tariff charge rate amount
bug defect error fault issue problem failure
crash panic abort die terminate kill exit oom
fast quick speed latency slow performance milliseconds ms
test check verify spec assert suite
folder directory path dir location under
file document spreadsheet table list
database db postgres postgresql mysql sqlite store
password credential secret token key login passphrase
user customer client member account visitor reader
meeting call appointment session gathering assembly
invoice bill receipt payment pay payout refund
delete remove drop erase purge clean
create add make new insert generate
change modify edit alter update adjust
fix repair mend solve patch resolve
start begin launch boot open
stop end finish halt quit cease
limit maximum cap quota bound threshold at-most
deadline due until expiry latest by
memory ram heap leak grow grew
disk storage partition volume filesystem drive sector space full
network vlan segment subnet lan connection port link socket
process daemon service worker job task thread goroutine
lock mutex race concurrent guard synchronise
branch fork trunk main master
review approve accept sign-off
name call alias nickname term word
phone telephone mobile number
address mail email post letter
time hour duration long minute downtime
outage downtime incident failure interruption blackout power
responsible owner lead charge contact chief
translation translate language locale strings localise
size weight bytes large big kb mb payload download
browser safari chrome firefox webkit
schedule cron nightly weekly daily regular
backup copy snapshot archive
log journal trace output
config configuration setting option parameter flag
library package dependency module crate
money budget finance cash treasurer cents
room hall venue place location
contract agreement terms
sample example fixture recording testdata genuine real
duplicate double twice repeated again idempotency
reject refuse deny decline bounce
cause reason why origin source culprit
decide decision choose agreed pick
staging pre-production testing sandbox
production live prod
screen page view display ui
version release build tag
people person someone staff team
company vendor supplier provider firm
quantity count number many
percent share ratio part
holiday vacation leave off
preis kosten gebühr beitrag betrag euro
rechner server maschine
treffen versammlung sitzung termin zusammenkunft
saal raum ort lokal gasthof
frist abgabe termin schluss ende bis
adresse anschrift
fehler problem ursache grund
löschen entfernen streichen
passwort kennwort zugang
geld kasse finanzen kassenwart kassenprüfer
miete pacht kostenlos umsonst gratis
brief post schreiben versand
ausland international
doppelt zweimal mehrfach gleich duplikat
konto iban bankverbindung kontonummer lastschrift
empfänger adressat
ungültig falsch fehlerhaft
aufbau gliederung struktur gegliedert
erreichen zurückgewiesen unzustellbar
ändern bearbeiten anpassen
font typeface lettering
colour color shade hue palette theme
picture image photo figure screenshot
article post text piece
chapter section part paragraph
author writer editor
newsletter mailing circular
translate convert turn
arrive reach get receive come
leave go depart
buy purchase order procure
sell sale sold
rent lease hire
train railway station
car vehicle van truck
bike bicycle rider ride trip
road street route way
city town village
country nation abroad foreign
doctor physician
child kid pupil student
parent mother father guardian
teacher tutor instructor
shop store market
restaurant inn pub cafe
hotel accommodation lodging
food meal lunch dinner catering
drink coffee tea
weather rain sun
morning evening night noon midnight
weekend saturday sunday
week weekly
month monthly
year annual yearly annually
early before prior earlier
late after later afterwards
old outdated legacy former previous obsolete
new recent latest fresh current
small tiny little short
wide width
high height tall
heavy weigh
cheap inexpensive
expensive costly
safe secure protected
dangerous risky
wrong incorrect faulty broken bad
right correct proper good valid
same identical equal
different other distinct
missing absent lacking lost gone
allowed permitted may
forbidden prohibited banned
required mandatory necessary needed must
optional voluntary
empty blank nil null
find discover detect locate
search look seek
see notice observe
hide conceal mask
show display render draw
print printer printout printing
write save persist
read load fetch get
send dispatch transmit deliver forward
ask query request call
answer reply respond response
explain describe
compare difference diff
join merge combine concat unite
split divide separate
copy duplicate clone
move migrate transfer relocate
sort order rank arrange
count tally number total
compute calculate work-out
encrypt cipher encoded encoding charset utf-8
compress gzip zip shrink
cache cached memoise
retry again attempt repeat
wait sleep pause delay backoff
timeout hang stuck freeze
connect connection pool pooler pgbouncer
certificate tls ssl https
domain dns hostname
firewall acl rule
router switch gateway hub
cable wire fibre
camera video
door gate entrance lock
alarm alert page pager notification notify
monitor dashboard grafana metrics graph
ticket issue task card
customer buyer shopper
order purchase basket cart
tax vat duty
currency dollar euro
rounding round precision decimal
discount rebate coupon
salary wage
accountant auditor bookkeeping
chairman chairwoman president head boss manager
deputy assistant vice
secretary clerk
lawyer legal
insurance policy
donation gift
grant subsidy funding
fee membership subscription dues
vote ballot election
agenda programme plan
minutes protocol record
guest visitor attendee participant
invitation invite
speech talk lecture presentation
music song piece score choir
key tone pitch
bar measure
commit revision change patch
rebase squash
pull-request pr mr merge-request
reviewer approver
ci pipeline workflow
container docker image pod
cluster kubernetes k8s
queue broker kafka rabbitmq
topic channel subject
event message notification
api endpoint route handler
request call query
header field attribute column
row record entry line
index key
foreign-key reference
transaction commit rollback
schema structure layout
struct type class record
function method routine procedure
variable value constant
string text characters
integer number int
float decimal double
array list slice vector
map dictionary hash
pointer reference address
loop iteration
compiler build compile
linter lint vet
formatter format style
editor ide
keyboard shortcut hotkey
mouse click tap press
button control widget
menu dropdown
dialog modal popup window
page screen site website
responsive narrow
dark light
accessibility a11y screenreader
seed random
clock timestamp drift skew
timezone utc zone
gestartet begonnen
fertig abgeschlossen beendet
schnell zügig
langsam träge
teuer kostspielig
billig günstig
kaufen bestellen
verkaufen
schicken senden verschicken
bekommen erhalten
geben übergeben
finden suchen
zeigen anzeigen
schreiben verfassen
lesen
rufen anrufen telefon telefonnummer
mail e-mail postfach
woche wöchentlich
monat monatlich
jahr jährlich
tag datum wann
uhr uhrzeit beginn
kind kinder schüler
eltern mutter vater familie
lehrer lehrerin
mitglied mitglieder mitgliedschaft
verein club
vorstand vorsitz vorsitzende leitung
einladung einladen
protokoll niederschrift
bericht jahresbericht heft
seite abschnitt kapitel
bild foto aufnahme
schrift schriftart
farbe
tabelle liste spalte zeile
datei dokument
ordner verzeichnis
druck drucken
rechnung quittung beleg
steuer umsatzsteuer
spende zuwendung
versicherung
auto wagen
zug bahn
straße weg
stadt ort
essen verpflegung buffet
trinken getränke
`), "\n")

// RelatedBy returns the words that people use for a word, by its stem.
func RelatedBy(stemOf func(string) string) map[string][]string {
	all := map[string][]string{}
	for _, line := range related {
		group := strings.Fields(line)
		for _, word := range group {
			stem := stemOf(word)
			for _, other := range group {
				if stemOf(other) != stem && !slices.Contains(all[stem], other) {
					all[stem] = append(all[stem], other)
				}
			}
		}
	}
	return all
}
