package main

import "sessiond/internal/session"

// programNamed returns the program of a name or an alias.
func programNamed(name string) (session.Source, bool) {
	for _, s := range session.Sources {
		if string(s) == name {
			return s, true
		}
	}
	return "", false
}
