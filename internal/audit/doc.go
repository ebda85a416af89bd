// Package audit is the record of administrative changes: what an entry is, and where entries
// are kept.
//
// It promises: (1) entries of one store have an order, that of the clocks of the nodes that
// recorded them; (2) a text of an entry fits every store, because [Entry.Fit] cuts it; (3) a
// store stays bounded, because each new entry lets old ones go.
//
// It decides nothing: package manage knows what a change is, and who makes it.
package audit
