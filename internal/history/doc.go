// Package history brings in the conversations that other programs left on this host. A
// Source knows one program's files: how to find them and how to read them. The Importer runs
// sources, feeds the store in short transactions, remembers how far each file was read, and
// answers with an Accounting in which every record of the source is imported, kept raw or
// skipped with a reason. Sources are never written to.
package history
