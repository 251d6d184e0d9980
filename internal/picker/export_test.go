package picker

// Look is what the picker does from time to time: it asks whether the database has changed.
func (m Model) Look() any { return m.look() }

// Choice is what the person left for.
func (m Model) Choice() Choice { return m.choice }
