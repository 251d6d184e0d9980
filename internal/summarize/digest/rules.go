package digest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sessiond/internal/pattern"
	"sessiond/internal/session"
)

// A standing rule is a sentence with which a person sets how all work is done: "Never add a crate without
// asking me." It holds until the person withdraws it; a request ends when the work is done. isRule recognises it
// by its wording alone, in English, German, Chinese and Japanese.

// Bounds of the section of rules, in tokens. Ten short rules fit into the smallest summary. A pasted list of
// thousands of rules fills only a part of the largest.
const (
	ruleShare  = 0.28 // of the summary of finished turns, a quarter of the whole
	leastRules = 200
	mostRules  = 600
)

func rulesBudget(limit int64) int64 {
	return min(max(int64(ruleShare*float64(limit)), leastRules), mostRules, limit/2)
}

// sign is wording that suggests a standing rule or, with a negative weight, a sentence about the moment.
type sign struct {
	weight int
	form   *pattern.Pattern
}

// enoughSigns is the sum of weights that makes a sentence a rule. A sign with this weight suffices alone.
const enoughSigns = 2

func signOf(weight int, forms ...string) sign {
	return sign{weight, pattern.New(`(?i)` + strings.Join(forms, "|"))}
}

// ruleSigns recognise rules: a rule covers all things of a kind, at any time, for everyone who works here. A sentence
// about the moment names one thing, event or feeling. Positive signs come first, because sumOfSigns stops after them.
var ruleSigns = []sign{
	// Words for any time.
	signOf(2, `\b(never|always|henceforth|going forward|at all times|as a rule|no exceptions|whenever|under no circumstances|(don['’]?t|do not) ever)\b`,
		`\b(niemals|nie|immer|stets|grundsätzlich|in jedem fall|künftig)\b`,
		`\b(jamais|toujours|systématiquement|désormais|en aucun cas|nunca|jamás|siempre|en ningún caso)\b`,
		`永远|从不|绝不|务必|一律|始终|总是|从现在起|今后|以后|统一|決して|絶対に|必ず|常に|統一`),
	// Permissions and prohibitions.
	signOf(2, `\b(must not|mustn['’]t|may(?: only| not)|not (to be|allowed|permitted)|forbidden|forbids?|banned|prohibited|hands off|off[- ]limits|frozen|nowhere else|nobody but|no one but)\b`,
		`\bwithout (asking|(my|our|an?|explicit|prior) (\pL+ )?(ok|okay|approval|permission|consent|go|review|reason))\b`,
		`\b(ask|check with|tell|warn|consult)( me| us)?( first| before\b| whenever)`, `\bget my (ok|okay|approval|permission)\b`, `\bunless i (say|ask|tell)\b`,
		`\b(verboten|nicht erlaubt|tabu|finger weg|ohne (mich|uns) zu \pL+|dürfen? (nicht|nie|kein\w*|nur)|darfst du (nicht|nie|kein\w*|nur)|ohne (meine|unsere|ausdrückliche|rück\w+|ab\w+)|nach (rück|ab)sprache|nur (mit|nach|wenn|über|durch)|bleib(t|en) (so|wie|auf|bei|unter|in|un\w+)|gehör(t|en) (nicht|nur|in)|frag\w* (mich |uns |lieber |immer )*(vorher|zuerst|bevor|nach))\b`,
		`\b(interdite?s?|sans (mon|notre|me|nous) \pL+|prohibid[oa]s?|sin (mi|nuestro|avisar\w*|preguntar\w*))\b`,
		`只有.{1,4}(可以|能)|禁止|不得|不许|不准|未经|没有.{1,6}(同意|允许|批准)|之?前(都|要|必须|先)+(问|跑|运行)|てはいけ|てはならな|てはなりま|許可なく|前に.{0,6}相談`),
	// One choice instead of another.
	signOf(2, `, (not|never|no|don['’]t) [^,;]+$`, `^[^,]*\b(over|instead of|rather than) \pL+[^,]*$`, `, nicht [^,;]+$`,
		`statt \pL+\.?$`, `[，,]?(而)?不(叫|是|用|写)[^，。]+。?$`, `ではなく`, `と(は)?(呼|言いま)`),
	// Statements about all, none or only some of a kind.
	signOf(2, `^(please,? )?(no|keine?) [^,;]+$`, `^(all|every|each|any|everything|nothing|only|max(imum)?|min(imum)?|alle|jede\w*|nichts|nur)\b[^,]*? (is|are|has|have|gets?|goes|go|needs?|must|may|can|should|stays?|uses?|ends?|starts?|deploys?|merges?|ist|sind|hat|haben|bekommt|bekommen|muss|müssen|wird|werden)\b`,
		`^(所有|每(个|次|一)|任何).*(都|要|必须|不|用|是)`, `^(すべて|全て|全部|毎回)`),
	signOf(2, `^(tous|toutes|chaque|les|todos|todas|cada|los|las) .*\b(sont|est|doi(t|ven)t|son|deben?|tienen?|lleva[n]?)\b`, `^n(e |['’])\pL+ (pas|rien)\b`,
		`^(réponds|écris|parle|responde|escribe|habla)(-moi|me)? (toujours |siempre )?(en|in) `),
	signOf(1, `\b(aucune?|chaque|tous|toutes|seulement|uniquement|ningun[oa]|ningún|cada|todos|todas|sólo|solamente|únicamente)\b`),
	signOf(1, `\b(all|every|each|any|no|none|only|nothing|everything|at (most|least)|(under|below|over|above|up to|within) [\d~]|max(imum)?|min(imum)?|unless|no more than|outside of|except|anywhere|everywhere|before you|after you)\b`,
		`\b(alle[nrms]?|jede\w*|kein\w*|nur|nichts|außer\w*|ohne)\b`, `每|所有|任何|只能|只用|不(要|能|可|用|准|超过)|别|都|超过|だけ|のみ|以内|以下|以上|すべて|全て|ないで|ない(こと|ように)`),
	signOf(2, `\b(at (most|least)|no more than|(be|is|are|stays?|remains?|keep \S+|lines?|functions?|files?) (under|below|over|above)|höchstens|mindestens|maximal) \d`, `\bgilt\b`),
	signOf(2, `\b(one|a single|no more than one) ([\pL-]+ ){1,2}per \pL+`, `^[\pL_-]+ (in|for|as|with) [^,]+, [\pL_-]+ (in|for|as|with) [^,]+$`, `\bfirst, then\b`, `\bbefore (it|they|anything) (is|are|gets?|goes)\b`),
	signOf(1, `\b(for|per|in|with) (every|each|all|any) `, `^(please )?make (sure )?(that )?(every|all|each|no)\b`,
		`^(请)?(别|不要|勿)(用|改|碰|写|加|提交|推|直接)`, `ないで(ください|ね)?。?$`, `(だけ|のみ)(に|で)?(して|使って)`),
	// A kind of thing and how it is: "Tests live …", "Commit messages must …", "money is".
	signOf(2, `^(and |also,? |but |so |oh,? |please,? )*((the|our) )?[\pL_-]+( [\pL_-]+){0,3}s (in \S+ |under \S+ |below \S+ )?(are (to|in|always|never|not to)|need|must|should|go|live|belong|stay|get \pL+ (in|with|by)|(start|begin|end) with|explain|follow|have to)\b`,
		`^([\pL_-]+ ){1,3}(is|are) (always |never |only )?\pL+(ed|en) (as|in|with|by|under|to|at|exactly|before|after|through)\b`,
		`\b(belongs?|stays?|remains?) (in|into|under|on|at|to|backwards?|in)\b`, `^[\pL-]+ (immer|stets|bitte|nur) (in|auf|als|mit|nach|im)\b`, `\bin (this|the|our) (repo|repository|project|codebase|company|team|house)\b.*\b(we|use|all|no|every|is|are)\b`,
		`^[^，。这那哪我你您他她先请帮把用再看]{2,8}?(里|中|前|后|时)?(一律|必须|统一|都|要|不(要|能|用|得|许|准|可)|只(能|用)|禁止|用(中|英|日|德)文)`, `^这个(项目|仓库|代码库).*(不|只|用|都)`,
		`^[^これそあのどな今先]{1,14}?(は|には|では|も)[^。]*?(ください|お願いします|こと|ないで|する|にして|ません|使います|扱います|書きます|します|いいです|で)。?$`),
	// Conventions of a group: "we use", "I prefer".
	signOf(2, `^(and |also,? |but |so |here,? |as for [^,]+, |in this [^,]+, |if [^,]+, )*(we|our (users|customers|team|convention|policy|rule|style))( only| never| always)? (use|call|say|write|prefer|keep|target|support|name|put|don['’]t|do not|are called|never|always|only|ship|stick|follow|is|says)\b`,
		`\bwe call (it|this|that|them)\b`, `\b(schreiben|sagen|nennen|nutzen|verwenden|benutzen|machen|committen) wir\b`, `\bwir (schreiben|sagen|nennen|nutzen|verwenden|benutzen|\pL+n( \pL+){0,5} (nicht|nie|nur|kein\w*))\b`, `我们(称|叫|把|只|不|都|用)`, `うちでは|弊社では|(この|当)プロジェクトでは`),
	signOf(2, `^i (prefer|like|hate|expect|insist|don['’]t (want|like)|do not (want|like)|never want|want (all|every|each|no|only|[\pL]+ing\b|(american|british|us|uk)))\b`, `^ich (will|möchte) (kein\w*|nur|alle|jede\w*)\b`),
	// A verb of manner with an object that is not one thing: "use tabs", "avoid globals".
	signOf(1, `^(and |also,? |but |so |oh,? |ok,? |okay,? |please,? |bitte )*(please )?(don['’]t|do not|avoid|prefer|use|keep|stick to|write|follow|treat|assume|prefix|indent|name|call|spell|quote|wrap|put|limit|leave|make sure|ensure|answer|reply|respond|speak|verwende\w*|benutze?\w*|nutze\w*|schreib\w*|antworte|halte?|fass)\b`),
	signOf(1, `\b(is|are) (always|never)\b`, `^only (touch|edit|use|change|write|work|commit|run|add|push) `),
	signOf(1, `^(and |also,? |but |so |oh,? |please,? )*(don['’]?t|do not) `),
	signOf(1, `^(and |also,? |but |please,? |bitte )*(stick to|treat|assume|prefix|avoid|prefer|indent)\b`),
	signOf(1, `^(and |also,? |but |please,? |bitte )*(don['’]t|do not|avoid|prefer|use|keep|stick to|write|follow|treat|assume|prefix|indent|name|wrap|put|limit|benutze?\w*|verwende\w*|nutze\w*) (in |on |with |to |only |edit |add |use |push |commit |touch |log |mock |squash |reformat |rename |delete |hardcode |be |write |run )?(an? |new |any )?([\pL_.-]+s\b|english|utc|\pL+ (over|instead|rather|as)\b|[\pL\d_-]+( [\pL\d_-]+)?(,|\.|!| here|$))`),
	signOf(2, `^(please |bitte )*((don['’]t|do not) (ever )?(touch|push|commit|edit|modify|squash|force|merge into|rebase|mock|hard-?code|guess|invent|assume)\b|(leave|keep) (the )?[\pL/. _-]+ (alone|untouched)|fass\w? .+ (nicht|nie) an|(answer|reply|respond|speak|talk|write to me|antworte|sprich)( to)?( me| mir)?( bitte)?( immer| always)? (in|on|with|briefly|auf|kurz))`,
		`\b(in|with) your (answers?|repl(y|ies)|commits?|summar(y|ies)|messages)\b`, `\b(style|conventions?|coding standards?|guidelines?|policy)\b[.!]?$`),
	// Conditions: "before you commit, …".
	signOf(2, `^(before|after|whenever|when|if|bevor|nachdem|wenn|falls|sobald) (you|we|du|a|an|any|anything|each|every|ein\w*|jede\w*) [^,]{3,60}, `, `^(when(ever)?|if|wenn|falls) [^,]+, .*\b(don['’]t|do not|never|always|ask|tell me|first|frag|sag|nie|kein\w*|erst)\b`,
		`\bbefore (you|each|every|any|committing|pushing|merging|adding)\b`, `\b(vor|nach|bei|in|mit) jede[mrs]\b`, `^(修|改|加|提交|写|发布|删).{0,10}(时|前|后|之前|之后)[，]?.{0,4}(要|先|必须)`),
	// Weak words of obligation.
	signOf(1, `\b(must|has to|have to|should|shall|needs? to|muss|müssen|soll(en)?)\b`, `必须|要|应该|べき`, `\bplease\b.*\b(here|everywhere|in (the )?\pL+)[.!]?$`),
	signOf(1, `统一|必须|一律|(で|に)統一|こと。?$|べき(だ|で|です)?。?$`),

	// Words of the moment.
	signOf(-3, `\b(now that|right now|for now|now|today|tonight|tomorrow|yesterday|this (time|morning|week|line|one|file|function|test|bug|page|error|commit|class|method|branch)|at the moment|just|yet|again|still|already|currently|meanwhile|monday|friday|minutes|let['’]?s|never ?mind|thanks|sorry|luck|clue|rush|hurry|worry|idea|worries|attached|screenshots?|last (message|commit|one|time)|first (line|one|test)|second (one|approach|line|option)|other one|(one|any|all|some|each|none|both|half) of (them|these|those|it|this|that)|every time (i|we|you|it)|(is|are) too|both|good to|(your|my) (first|second|last|old|new|other))\b`,
		`\b(jetzt|gerade|heute|morgen|gestern|erst ?mal|vorerst|diesmal|noch (nicht|mal|immer|nie|ein\w*)|immer (noch|wieder)|nochmal|schon|wieder|mal|ahnung|leider|doch|damals|danke)\b`,
		`\b(maintenant|aujourd['’]hui|encore|demain|cette fois|merci|ahora|hoy|ayer|mañana|todavía|esta vez|gracias)\b`,
		`(这|那)(个|次|行|里|样|些|是|边)(文件|函数|先|测试|错误)?|今天|昨天|现在|目前|已经|刚|先不|先看|暂时|还是|一下|他们|第[一二三](个|次|种|行|条|步|张)|最后一|下午|明天|这次`, `これ|それ|あれ|この(関数|ファイル|行|テスト|エラー)|その|あの|今回|今日|今は|いま(は|すぐ|から)|まず|とりあえず|まだ|もう一度|最初|さっき|昨日|ここで|なぜ`),
	// Reports of events and states.
	signOf(-4, `\b(was|were|wasn['’]t|weren['’]t|had|did|didn['’]t|has been|have been|went|said|says?|broke|told|meant|changed|tried|worked|works|happened|happens|saw|found|found out|crash(es|ed)?|fail(s|ed|ing)?|pass(es|ed|ing)?|(is|are|all|still|not|line|now) (broken|down|green|red|wrong|done|fixed|missing|fine|slow|needed)|looks|seems?|reloads?|crashing|shows? up|must have|should have|would have|could have)\b`,
		`\b(i|he|she|it|they|we|nothing|nobody|which|who) (just )?\pL{2,}ed\b|^you (just )?\pL{2,}ed\b`, `\b(is|are|['’]s|['’]re|am|['’]m) (not )?\pL{2,}ing\b`,
		`\b(war|waren|wurde\w*|(ich|du|er|sie|es|wir|kunde|das) (hat|hast|habe|haben)|(hat|hast|habe) (ich|du|er|sie|es)|hatten?|hätten?|ging|gab|kam|kaputt|fehl|geht nicht|doppelt|ist gut|da)\b|\b\pL+lief\b`, `\b(était|avait|étaient|ont été|a été|fue|era|había|han sido|ha sido|estaba)\b`, `了[。！]?$|失败|通过|没问题|(ました|ませんでした|でした|失敗\S*|止まります|ありません[、。]|たいです)。?`),
	// Statements about one thing, and narration.
	signOf(-3, `^(it|this|that|he|she|they|there|these|those|the (error|page|customer|user|client|build|button|bug|test|docs?|thing|problem|issue)|you (are|have|were|did|always|never|must have)|yes|yeah|ok|right)\b( |,|['’])`, `^(no|yes|yeah|nope|ok|okay|nein|ja),`, `^i(['’]m|['’]ve|['’]ll| am| have| had| think| guess| see| know| don['’]t (know|see|think|understand|get|care)| can['’]?t| was| need| wonder| just)\b`,
		`\b(that|dass) (i|you|he|she|it|they|we|ich|du|er|sie|es|wir) `, `\ball (i|you|we|he|she|they|it|that|this)\b`, `\b(it|das) (always|never|immer|nie)\b`, `\bdas (muss|ist|war|geht)\b`, `\bif (yes|no|not|so|necessary|possible|needed|you (like|want|think|can|have|could))\b`, `\bwenn du (willst|magst|kannst|fertig|hast|möchtest)\b`),
	// Requests for one thing.
	signOf(-1, `^(please,? |bitte )*(don['’]t |do not )?\pL+ (the|this|that|it|them|him|her|those|these|my|your) `, `\b(it|that|this|them)[.!]?$`, `^(the|my|your|his|her|their) `),
	signOf(-3, `\b(those|these|some|could|anything you)\b`, `^(if|when) (you|we|i) (can|want|have|like|see|get|look)\b`,
		`^(should|needs?|must|looks|seems) `),
	signOf(-2, `^(and |then |also,? |please,? |now |ok,? )*(write|call|name|put|wrap|answer) (an?|the|\pL+) [^,]*\b(for|in|of|to|about) (the|this|that|my) \pL+( first| now)?(,|\.|$)`, `^(and |then |also,? |please,? |now |ok,? )*(write|call|put|wrap|leave) (me )?(an?|the) \pL+( \pL+)?[.!]?$`),
	signOf(-2, `^(everything|nothing) (is|has|was|in|happens)\b`, `^es (kommt|geht|ist|war|wird|gibt|sieht|steht|läuft)\b`,
		`が(出|表示|起き|止ま|落ち|崩れ)`),
	signOf(-2, `^(and |then |please,? |bitte |also,? |can you |now )*(add|remove|move|rename|update|run|check|search|find|list|look|show|give|explain|fix|split|replace|delete|create|open|undo|stop|try|such\w?|zeig\w?|mach\w?|schau\w?|prüf\w?|benenn\w?|nimm|lass|lies)\b`, `(看看|查|帮我|给我|再|把)`, `(探して|見せて|直して|調べて|見て|教えて)(ください)?`),
}

// Wording that withdraws a rule.
var (
	ruleForgot   = pattern.New(`(?i)^(please |ok,? |okay,? )*(forget|ignore|drop|scrap|never mind|nevermind) (about )?(that|this|the|my|what i said|it|rule)\b|\b(vergiss|ignoriere) (das|die regel)|忘(了|掉)(那|这|关于)|(那|这)条规则(取消|作废)|忘れて`)
	ruleItself   = pattern.New(`(?i)\b(rules?|regeln?)\b|(那|这)?条?(规则|规定)吧?|さっきの|ルール[はをも]?`)
	ruleReplaced = pattern.New(`(?i)\b(instead|no longer|not any ?more|stattdessen|nicht mehr)\b|改(用|为)|不再|代わりに|ではなく`)
)

// ruleInsteadOf captures the subject of the rule that a new one replaces.
var ruleInsteadOf = pattern.New(`(?i)\b(?:instead of|rather than|no longer|not any ?more|statt|anstelle von) (.+)`)

// longestRule is the limit of a rule in bytes, below softSentence. Longer sentences are mostly pasted text.
const longestRule = 250

// fromNowOn matches beginnings of a rule that contain a word of the moment ("now").
var fromNowOn = pattern.New(`(?i)\bfrom (now|today|here|this point) on\b|\bab (jetzt|sofort|heute)\b|从(现在|今天)起|今日から|これから(は)?|\bà partir de maintenant\b|\ba partir de ahora\b`)

// isRule reports whether a sentence of a person is a standing rule.
func isRule(s string) bool {
	if len(s) > longestRule || len(s) < 6 || isQuestion(s) || strings.HasSuffix(s, ":") || ruleForgot.MatchString(s) {
		return false
	}
	s = fromNowOn.ReplaceAllString(leadIn.ReplaceAllString(s, ""), "henceforth")
	task := isTask(s)
	return !task && sumOfSigns(s) >= enoughSigns ||
		slices.ContainsFunc(ruleClause.FindAllStringIndex(s, -1), func(at []int) bool {
			clause := s[at[0]:]
			if task && strings.HasPrefix(clause, ", ") && !anyTime.MatchString(clause) { // "fix the typos, no other changes"
				return false
			}
			clause = strings.TrimLeft(clause, ".,;:：-–— ")
			return !isTask(clause) && sumOfSigns(clause) >= enoughSigns
		})
}

// isTask reports whether a sentence asks for a piece of work that is done once, however it is to be done: "Write
// property tests for the search first, the happy path only".
func isTask(s string) bool { return taskForm.MatchString(s) && !anyTime.MatchString(s) }

// taskForm matches a sentence that begins with a verb of work.
var taskForm = pattern.New(`(?i)^(please |bitte |now |then |and |also |just |ok(ay)?,? |so |first,? |next,? |can you |could you |go ahead and |let['’]?s )*` +
	`((build|compare|convert|count|cover|create|debug|delete|deploy|describe|draft|draw|explain|extract|figure out|find|finish|fix|generate|give me|implement|investigate|list|look|merge|move|open|optimi[sz]e|port|prepare|print|profile|read|rebuild|redo|refactor|remove|rename|repeat|replace|reproduce|rerun|restart|revert|review|rewrite|search|show|simplify|sketch|sort|split|start|summari[sz]e|switch|take|test|tidy|translate|try|update|upgrade)` +
	`|(write|add|change|check|do|run|make|put) (me )?(an?|the|this|that|these|those|it|one|two|three|some|all|only|\pL+ (tests?|docs?|notes?|functions?|helpers?|lines?|flags?|logs?|columns?|buttons?))` +
	`|(erstell|schreib|mach|prüf|kürz|such|zeig|bau|füg|lösch|änder|sortier|übersetz|erklär|nimm)(e|st)?)\b|^(写一|加一|做一|把|帮我|给我)|(だけ|を)(書いて|直して|表示して|作って|調べて)(ください)?。?$`)

// anyTime matches wording by which even a request for work holds whenever such work is done.
var anyTime = pattern.New(`(?i)\b(never|always|every time|whenever|henceforth|generally|as a rule|before (you|each|every|any|\pL+ing)|after (you|each|every|any)|(for|with|in|on|at|to|after) (every|each|any|all)|first, then|without (asking|my|our)|ohne (mich|uns|meine)|new \pL+ must|(every|each|any) \pL+ (you|we|must|needs?|has)|nie|niemals|immer|stets|grundsätzlich|jede[mnrs]?|bevor)\b|sure (that )?(every|all|each|no)\b|每(次|个)|永远|总是|必ず|常に|毎回`)

// isRule reports whether a sentence in the person's own voice is a standing rule. Below a heading of rules each
// sentence is one that does not speak of the moment.
func (s *sentence) isRule() bool {
	if len(s.text) > 2*longestRule {
		return false
	}
	text := withoutQuotations(s.said, saidWords)
	readings := append([]string{text, withoutQuotations(s.said, 1), withoutReason.ReplaceAllString(text, "")},
		endOfClause.Split(text, -1)...)
	for i, reading := range readings {
		if !slices.Contains(readings[:i], reading) && isRule(reading) {
			return !isReport(s.text)
		}
	}
	return s.listed && len(text) <= longestRule && !isQuestion(text) && !strings.HasSuffix(text, ":") &&
		!speaksOfTheMoment(text) && !isReport(text)
}

// endOfClause matches the end of a sentence before one that begins in small letters.
var endOfClause = pattern.New(`[.!?]\s+`)

// withoutReason matches what a person adds to a rule to explain it: "…, so that we see which one it was".
var withoutReason = pattern.New(`(?i), (so that|because|since|as|they|it|we|so|even if|which|weil|damit|denn|auch wenn|car|parce que|porque|ya que) [^,].*$|(，|、)(因为|否则|不然).*$`)

// isOwn reports whether a sentence is in the voice of a person who wrote it, rather than quoted or pasted.
func (s *sentence) isOwn() bool { return s.by == byPerson && !s.pasted && !s.quoted }

// speaksOfTheMoment reports whether the negative signs of a sentence outweigh the positive ones.
func speaksOfTheMoment(text string) bool {
	sum := 0
	for _, sign := range ruleSigns {
		if sign.form.MatchString(text) {
			sum += sign.weight
		}
	}
	return sum < -1
}

// ruleClause matches the beginning of a rule after another clause: "rename it, and by the way: exported names always
// get a comment".
var ruleClause = pattern.New(`(?i)[;:] |：| [-–—] |\. (never|always|please|do not|don['’]t|no|keep) |, (but |so |and |aber |und )?(never|always|you may|no |only |niemals)`)

// leadIn matches words that lead on to a rule.
var leadIn = pattern.New(`(?i)^(\(?\d{1,2}[.)、] *)?((and|also|but|plus|remember|please note|note|important|wichtig|merke?|recuerda|rappel|pls|please remember)( that|,|:)? )?`)

// sumOfSigns returns the sum of the weights of matching signs. It skips negative signs if the positive ones do not
// suffice.
func sumOfSigns(s string) (sum int) {
	for _, sign := range ruleSigns {
		if sign.weight < 0 && sum < enoughSigns {
			break
		}
		if sign.form.MatchString(s) {
			sum += sign.weight
		}
	}
	return sum
}

// ruleName returns the suffix of a rule that names its message, and in a group its author: " (#12)", " (#12 Ann)".
func (sp *span) ruleName(msg int) string {
	m, last := &sp.msgs[msg], &sp.msgs[len(sp.msgs)-1]
	ref := fmt.Sprintf("#%d", m.Seq)
	switch {
	case m.Seq == 0:
		return ""
	case m.SessionID != last.SessionID:
		ref = m.ID.String()
	}
	if name := sp.nameOf(msg); name != "" {
		ref += " " + name
	}
	return " (" + ref + ")"
}

var nameBehind = pattern.New(` \((#|\d{8}_\d+\.)\d+( [^()]*)?\)$`)

// namedMessage returns the message that a rule names, without a session for one of its own; ok is false for none.
func namedMessage(rule string) (ref session.MessageRef, ok bool) {
	name, _, _ := strings.Cut(strings.Trim(nameBehind.FindString(rule), " ()"), " ")
	if seq, own := strings.CutPrefix(name, "#"); own {
		ref.Seq, _ = strconv.ParseInt(seq, 10, 64)
		return ref, ref.Seq > 0
	}
	ref, err := session.ParseRef(name)
	return ref, err == nil
}

// wasQuoted reports whether a rule of an earlier summary is none: its message, if it can be read, has that sentence as
// another's words. Summaries of older versions have such rules.
func (sp *span) wasQuoted(rule string) bool {
	ref, ok := namedMessage(rule)
	if !ok || sp.read == nil {
		return false
	}
	m, err := sp.read(ref)
	if err != nil {
		return false // deleted meanwhile: the rule stays
	}
	none := false
	for _, s := range scanFor([]session.Message{m}, true, sp.givers).sentences {
		if withoutName(s.text) != withoutName(rule) {
			continue
		}
		if s.rule {
			return false
		}
		none = none || s.quoted || isReport(s.text) || s.noGiver
	}
	return none
}

// withoutName returns a rule without that suffix, in lower case, for comparisons.
func withoutName(rule string) string {
	return strings.ToLower(strings.TrimRight(nameBehind.ReplaceAllString(rule, ""), " .!。！"))
}

// standingRules returns the rules of the previous summary and those that the span adds, oldest first, without those
// that the person withdrew.
func (sp *span) standingRules(old []line) []line {
	rules := make([]line, 0, len(old))
	at := map[string]int{} // by words
	add := func(l line) {
		if key := withoutName(l.text); at[key] == 0 {
			rules = append(rules, l)
			at[key] = len(rules)
		}
	}
	for _, l := range old {
		add(l)
	}
	remove := func(i int) {
		delete(at, withoutName(rules[i].text))
		rules[i].text = ""
	}
	for k := range sp.sentences {
		s := &sp.sentences[k]
		if !s.isOwn() || s.noGiver {
			continue
		}
		switch {
		case ruleForgot.MatchString(s.text):
			about := ruleItself.ReplaceAllString(ruleForgot.ReplaceAllString(s.text, " "), " ")
			if i := mostAlike(rules, about, min(1, len(ruleWords(about)))); i >= 0 { // "forget that" alone: the newest
				remove(i)
			}
		case s.rule:
			if ruleReplaced.MatchString(s.text) {
				i := mostAlike(rules, s.text, 2)
				if of := ruleInsteadOf.FindStringSubmatch(s.text); i < 0 && of != nil && fromNowOn.MatchString(s.text) {
					i = mostAlike(rules, of[1], max(1, len(ruleWords(of[1]))))
				}
				if i >= 0 {
					remove(i)
				}
			}
			add(line{text: s.text + sp.ruleName(s.msg), order: k})
		}
	}
	kept := rules[:0]
	for _, l := range rules {
		if l.text != "" {
			kept = append(kept, l)
		}
	}
	return kept
}

// mostAlike returns the index of the rule that shares the most words with a text, the newest of several; -1 if none
// shares at least least words.
func mostAlike(rules []line, text string, least int) int {
	words := ruleWords(text)
	best, most := -1, least
	for i := range rules {
		n := 0
		for w := range ruleWords(withoutName(rules[i].text)) {
			for said := range words {
				if w == said || w[0] > '9' && (strings.HasPrefix(w, said) || strings.HasPrefix(said, w)) { // crate, crates
					n++
				}
			}
		}
		if n >= most && rules[i].text != "" {
			best, most = i, n
		}
	}
	return best
}

// ruleWords returns the words that name the subject of a rule; for scripts without spaces, pairs of characters.
func ruleWords(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if r := []rune(w); isCJK(r[0]) {
			for i := range r[1:] {
				words[string(r[i:i+2])] = true
			}
			continue
		}
		if w[0] <= '9' || len(w) > 3 &&
			!strings.Contains(" that this rule about forget ignore from instead said what never always must ", " "+w+" ") {
			words[w] = true
		}
	}
	return words
}

// Rule is a standing rule and its message.
type Rule struct {
	Message session.MessageRef `json:"message"`
	Author  string             `json:"author,omitempty"` // of a group
	Text    string             `json:"text"`             // secrets masked
}

// StandingRules returns the rules that hold at the end of a conversation, oldest first.
func StandingRules(msgs []session.Message, givers session.Givers) []Rule {
	said := slices.DeleteFunc(slices.Clone(msgs), func(m session.Message) bool { return speakerOf(&m) != byPerson })
	sp := scanFor(said, true, givers)
	rules := []Rule{}
	for _, l := range sp.standingRules(nil) {
		msg := sp.sentences[l.order].msg
		rules = append(rules, Rule{said[msg].ID, sp.nameOf(msg), nameBehind.ReplaceAllString(l.text, "")})
	}
	return rules
}
