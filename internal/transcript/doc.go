// Package transcript turns a session into items to show: messages, tool calls with their results,
// lines where compactions cut and branches leave. Writers render the items for a terminal, as Markdown
// and as HTML. The package also formats facts for lists: bars, sizes, times, money.
package transcript
