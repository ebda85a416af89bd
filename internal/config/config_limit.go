package config

import "time"

// Audit is the section audit.
type Audit struct {
	Keep time.Duration `key:"keep" default:"2160h" min:"1h" max:"87600h" help:"How long administrative changes stay in the table leaf_audit, which leaf audit shows. Each new one lets older ones go. The default is 90 days."`
}

// Limit is the section limit.
type Limit struct {
	Refresh    time.Duration `key:"refresh" default:"2s" min:"100ms" max:"1h" help:"How often the limits of tags and clients are read from the database. What leaf limit set and leaf limit clear change through this node takes effect at once."`
	MaxWaiting int64         `key:"max-waiting" default:"10000" min:"1" max:"1000000" help:"Most requests of a mode that may wait for IDs at once; with several databases, for those of each one. The limit in force adapts below it, by target-wait. As many may wait for the owners of tags in strict order. One more gets an error that says when to retry."`
	TargetWait time.Duration `key:"target-wait" default:"250ms" min:"1ms" max:"1m" help:"If requests that have to wait do so for longer than this on average, newer ones are rejected at once. It should be a fraction of segment.max-wait."`
}
