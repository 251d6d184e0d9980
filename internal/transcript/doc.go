// Package transcript turns a session into items to show: what was said, tool calls with
// their results folded in, the lines where compactions cut and branches leave. The items are
// values without a form; Terminal, Markdown and HTML are their forms. It also formats the small facts of a
// list: bars, sizes, times, money.
package transcript
