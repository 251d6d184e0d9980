// Package historytest is what the tests of the importers have in common: a House, which is a
// store with an importer in front of it; claims that hold for every program; a Checker of what a
// source gives against what the store demands of it; and CheckPi and CheckGoose, which tell
// whether files that sessiond writes for other programs are what those programs write
// themselves. The latter two are made from the formats alone and share nothing with the packages
// that read and write them.
package historytest
