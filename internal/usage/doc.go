// Package usage knows models and money: a catalogue of windows, modalities and prices, and
// how each provider's usage object becomes a row of the ledger.
//
// The catalogue stands in catalogue.json and is merged with the user's own of the same
// form. Prices there are US dollars per million tokens; in Go and SQL they are whole
// nano-dollars per token, so $1 per million is 1000. The figures were taken from the
// models.dev catalogue, from pi's generated model list and from providers' own pages;
// scripts/models renews it. They are list prices of the model's maker; fast holds those of a fast mode, and
// batch and flex requests cost half. Rates by time of day and region are not modelled. valid_from is the day of a
// change or of the model's release; where that was not found, a day before it.
//
// Two rules of the makers are:
//   - Anthropic charges 1.25 times the input price for a cache write that lasts five minutes
//     and twice the input price for one of an hour.
//   - A tier applies to the whole request, its output too, once the prompt is longer than the
//     tier's limit; the prompt includes what is read from and written to the cache. So do
//     Anthropic (200,000 tokens: Sonnet 4 and 4.5; Opus and Sonnet 4.6 until 2026-03-12),
//     Google (200,000: the Pro models), OpenAI (272,000: GPT-5.4 and later) and xAI (128,000
//     or 200,000). Source: the makers' pricing pages.
package usage
