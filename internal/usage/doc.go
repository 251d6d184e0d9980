// Package usage knows models and money: a catalogue of windows, modalities and prices, and
// how each provider's usage object becomes a row of the ledger.
//
// The catalogue stands in catalogue.json and is merged with the user's own of the same
// form. Prices there are US dollars per million tokens; in Go and SQL they are whole
// nano-dollars per token, so $1 per million is 1000. The figures were taken from the
// models.dev catalogue, from pi's generated model list and from providers' own pages. They
// are list prices of the model's maker for ordinary requests: dearer tiers above a length
// of context, batch and priority rates, rates by time of day and the double rate of
// hour-long cache writes are not modelled. valid_from is the day of a change or of the
// model's release; where that was not found, a day before it.
package usage
