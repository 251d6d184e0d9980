package transcript

import (
	"slices"
	"strings"
)

// language says how code is read to colour it: enough to find its words, texts and comments. Each field is a list,
// separated by spaces.
type language struct {
	names    string // in fences and as endings of files
	words    string // keywords, types and constants
	comments string // what begins a comment that ends with its line
	blocks   string // pairs: what begins and ends a comment of any length
	texts    string // quotes of texts that end on their line, with escapes
	long     string // quotes of texts of any length, with escapes
	raw      string // quotes of texts of any length, without escapes
	key      byte   // follows a key, which is coloured as a word: ':' or '='
	anyCase  bool   // words are keywords in upper and lower case
	markup   bool   // tags and attributes; none of the fields above but blocks
	changes  bool   // lines that + and - begin; none of the fields above
}

const (
	cWords = `break case char const continue default do double else enum extern float for goto if inline int long
		register return short signed sizeof static struct switch typedef union unsigned void volatile while bool true
		false NULL size_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t`
	jsWords = `as async await break case catch class const continue debugger default delete do else export extends
		finally for from function get if import in instanceof let new of return set static super switch this throw try
		typeof var void while with yield true false null undefined NaN Infinity`
)

// languages are those of which a page colours code.
var languages = []language{
	{
		names: "go golang", comments: "//", blocks: "/* */", texts: "\" '", raw: "`",
		words: `break case chan const continue default defer else fallthrough for func go goto if import interface map
			package range return select struct switch type var any bool byte comparable complex64 complex128 error
			float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr true false
			nil iota`,
	},
	{
		names: "python py python3 pyi py3", comments: "#", texts: "\" '", long: `""" '''`,
		words: `and as assert async await break case class continue def del elif else except finally for from global if
			import in is lambda match nonlocal not or pass raise return try while with yield True False None self cls
			bool bytes dict float int list object set str tuple`,
	},
	{
		names:    "javascript js jsx mjs cjs node",
		comments: "//", blocks: "/* */", texts: "\" '", long: "`", words: jsWords,
	},
	{
		names:    "typescript ts tsx mts cts",
		comments: "//", blocks: "/* */", texts: "\" '", long: "`",
		words: jsWords + ` abstract any asserts bigint boolean declare enum implements infer interface is keyof module
			namespace never number object override private protected public readonly satisfies string symbol type
			unknown`,
	},
	{
		names: "bash sh shell zsh ksh console shell-session shellscript", comments: "#", long: `"`, raw: "'",
		words: `case do done elif else esac fi for function if in select then until while alias cd command declare
			echo eval exec exit export local printf read readonly return set shift source time trap unset wait`,
	},
	{
		names: "json jsonc json5 jsonl ndjson ipynb", comments: "//", blocks: "/* */", texts: `"`, key: ':',
		words: "true false null",
	},
	{names: "yaml yml", comments: "#", texts: `"`, raw: "'", key: ':', words: "true false null yes no on off"},
	{names: "toml", comments: "#", texts: `"`, long: `"""`, raw: "''' '", key: '=', words: "true false"},
	{
		names: "ini cfg conf properties env dotenv editorconfig service", comments: "# ;", key: '=',
		words: "true false yes no on off",
	},
	{
		names: "sql postgres postgresql psql plpgsql mysql sqlite sqlite3", comments: "--", blocks: "/* */", raw: "'",
		anyCase: true,
		words: `add all alter analyze and any as asc begin between by cascade case check collate column commit conflict
			constraint create cross current_timestamp database default deferred delete desc distinct do drop else end
			escape except exists explain foreign from full function glob grant group having if ignore immediate in index
			inner insert intersect into is isnull join key language left like limit materialized natural not nothing
			notnull null offset on or order outer over partition pragma primary procedure recursive references rename
			replace returning returns revoke right rollback row rows savepoint schema select set strict table temp
			temporary then to transaction trigger truncate union unique update using vacuum values view virtual when
			where window with without bigint blob boolean bool bytea char character date double float int integer
			interval json jsonb numeric precision real serial smallint text time timestamp timestamptz uuid varchar
			true false`,
	},
	{
		names: "html htm xhtml xml svg vue svelte rss xsd xsl plist gohtml tmpl csproj pom", blocks: "<!-- --> <! > <? >",
		markup: true,
	},
	{
		names: "css scss less sass", comments: "//", blocks: "/* */", texts: "\" '", key: ':',
		words: "important from to and not only",
	},
	{
		names: "rust rs", comments: "// #[ #![", blocks: "/* */", texts: `"`,
		words: `as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move
			mut pub ref return self Self static struct super trait type unsafe use where while bool char f32 f64 i8 i16
			i32 i64 i128 isize str String u8 u16 u32 u64 u128 usize Box Option Result Vec Some None Ok Err true false`,
	},
	{
		names: "java", comments: "//", blocks: "/* */", texts: "\" '", long: `"""`,
		words: `abstract assert boolean break byte case catch char class const continue default do double else enum
			extends final finally float for if implements import instanceof int interface long native new package
			permits private protected public record return sealed short static strictfp super switch synchronized this
			throw throws transient try var void volatile while yield true false null`,
	},
	{
		names: "kotlin kt kts", comments: "//", blocks: "/* */", texts: "\" '", long: `"""`,
		words: `abstract as break by catch class companion const constructor continue data do else enum external final
			finally for fun get if import in infix init inline inner interface internal is it lateinit object open
			operator out override package private protected public reified return sealed set super suspend this throw
			try typealias val var vararg when where while Any Boolean Byte Char Double Float Int Long Nothing Short
			String Unit true false null`,
	},
	{
		names: "swift", comments: "//", blocks: "/* */", texts: `"`, long: `"""`,
		words: `actor as associatedtype async await break case catch class continue default defer deinit do else enum
			extension fallthrough fileprivate final for func guard if import in indirect init inout internal is lazy let
			mutating nonisolated open operator override private protocol public repeat required rethrows return self
			Self some static struct subscript super switch throw throws try typealias var weak where while Any Array
			Bool Character Dictionary Double Float Int Int32 Int64 Optional Set String UInt Void true false nil`,
	},
	{names: "c h", comments: "// #", blocks: "/* */", texts: "\" '", words: cWords},
	{
		names: "c++ cpp cc cxx hpp hh hxx ino cuda cu objc objective-c m mm", comments: "// #", blocks: "/* */",
		texts: "\" '",
		words: cWords + ` alignas alignof and auto catch class co_await co_return co_yield concept consteval constexpr
			constinit decltype delete dynamic_cast explicit export final friend mutable namespace new noexcept not
			nullptr operator or override private protected public reinterpret_cast requires static_assert static_cast
			template this throw try typeid typename using virtual wchar_t string vector self nil YES NO id`,
	},
	{
		names: "csharp c# cs", comments: "// #", blocks: "/* */", texts: "\" '", long: `"""`,
		words: `abstract as async await base bool break byte case catch char checked class const continue decimal default
			delegate do double dynamic else enum event explicit extern finally fixed float for foreach get global goto if
			implicit in init int interface internal is lock long namespace new object operator out override params
			partial private protected public readonly record ref required return sbyte sealed set short sizeof
			stackalloc static string struct switch this throw try typeof uint ulong unchecked unsafe ushort using value
			var virtual void volatile when where while with yield true false null`,
	},
	{
		names: "php", comments: "// #", blocks: "/* */", long: "\" '",
		words: `abstract and array as break callable case catch class clone const continue declare default do echo else
			elseif empty enum extends final finally fn for foreach function global goto if implements include
			include_once instanceof insteadof interface isset list match namespace new or print private protected public
			readonly require require_once return static switch throw trait try unset use var while xor yield bool float
			int iterable mixed never object string void self parent true false null`,
	},
	{
		names: "ruby rb erb gemfile rakefile", comments: "#", long: "\" '",
		words: `alias and begin break case class def defined do else elsif end ensure extend for if in include loop module
			next not or private protected public raise redo require require_relative rescue retry return self super then
			undef unless until when while yield attr_accessor attr_reader attr_writer lambda proc true false nil`,
	},
	{
		names: "perl pl pm", comments: "#", long: "\" '",
		words: `and bless cmp defined delete die do each else elsif eq eval exists for foreach ge gt if keys last le local
			lt my ne next no not open or our package print printf push qw redo ref require return say scalar shift sub
			undef unless until use values wantarray while`,
	},
	{
		names: "lua", comments: "--", blocks: "--[[ ]]", texts: "\" '",
		words: `and break do else elseif end for function goto if in local not or repeat return then until while true
			false nil self`,
	},
	{
		names: "scala sbt", comments: "//", blocks: "/* */", texts: `"`, long: `"""`,
		words: `abstract case catch class def do else enum export extends extension final finally for given if implicit
			import lazy match new object override package private protected return sealed super then this throw trait
			try type using val var while with yield Any Boolean Double Float Int List Long Map Option Seq String Unit
			true false null`,
	},
	{
		names: "dart", comments: "//", blocks: "/* */", texts: "\" '", long: `""" '''`,
		words: `abstract as assert async await base bool break case catch class const continue covariant default deferred
			do double dynamic else enum export extends extension external factory final finally for Function get if
			implements import in int interface is late library List Map mixin new num on operator part required rethrow
			return sealed set show static String super switch sync this throw try typedef var void while with yield true
			false null Future`,
	},
	{
		names: "elixir ex exs", comments: "#", texts: `"`, long: `"""`, raw: "'",
		words: `after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else end fn for
			if import in not or quote raise receive require rescue try unless unquote use when with true false nil`,
	},
	{
		names: "zig", comments: "//", texts: "\" '",
		words: `align allowzero and anyframe anytype asm async await break callconv catch comptime const continue defer else
			enum errdefer error export extern fn for if inline noalias nosuspend opaque or orelse packed pub resume return
			struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while anyerror bool
			f32 f64 i8 i16 i32 i64 isize type u8 u16 u32 u64 usize void true false null undefined`,
	},
	{
		names: "haskell hs", comments: "--", blocks: "{- -}", texts: `"`,
		words: `case class data default deriving do else family forall foreign hiding if import in infix infixl infixr
			instance let module newtype of qualified then type where Bool Char Double Either Float Int Integer IO Just
			Left Maybe Nothing Right String True False`,
	},
	{
		names: "r", comments: "#", long: "\" '",
		words: "break else for function if in next repeat return while library require TRUE FALSE NULL NA NaN Inf",
	},
	{
		names: "dockerfile docker containerfile", comments: "#", texts: "\" '", anyCase: true,
		words: `add arg as cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal
			user volume workdir`,
	},
	{
		names: "make makefile mk", comments: "#", key: ':',
		words: `define else endef endif export ifdef ifeq ifndef ifneq include override unexport`,
	},
	{
		names: "powershell ps1 pwsh psm1", comments: "#", blocks: "<# #>", texts: `"`, raw: "'", anyCase: true,
		words: `begin break catch class continue do dynamicparam else elseif end enum exit filter finally for foreach
			function if in param process return switch throw trap try until using while`,
	},
	{
		names: "hcl terraform tf tfvars nix", comments: "# //", blocks: "/* */", texts: `"`, key: '=',
		words: `assert data dynamic else for if import in inherit let locals module output provider rec resource terraform
			then variable with true false null`,
	},
	{
		names: "protobuf proto graphql gql", comments: "// #", blocks: "/* */", texts: `"`, long: `"""`,
		words: `enum extend import map message oneof option optional package repeated required reserved returns rpc service
			stream syntax bool bytes double fixed32 fixed64 float int32 int64 sint32 sint64 string uint32 uint64
			directive fragment implements input interface mutation on query scalar schema subscription type union true
			false null`,
	},
	{names: "markdown md mdx", blocks: "<!-- -->", raw: "```", texts: "`"},
	{names: "diff patch udiff", changes: true},
}

// rules are the fields of a language as lists.
type rules struct {
	comments, blocks, texts, long, raw []string
	keywords                           map[string]bool
	key                                byte
	anyCase, markup, changes           bool
}

// rulesOf returns the rules of the language that a fence or the ending of a file names.
func rulesOf(name string) (r rules, known bool) {
	for _, l := range languages {
		if !slices.Contains(strings.Fields(l.names), name) {
			continue
		}
		r = rules{
			comments: strings.Fields(l.comments), blocks: strings.Fields(l.blocks),
			texts: strings.Fields(l.texts), long: strings.Fields(l.long), raw: strings.Fields(l.raw),
			keywords: map[string]bool{}, key: l.key, anyCase: l.anyCase, markup: l.markup, changes: l.changes,
		}
		for word := range strings.FieldsSeq(l.words) {
			r.keywords[word] = true
		}
		return r, true
	}
	return r, false
}
