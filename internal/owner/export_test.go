package owner

// Score is what a node bids for a slot.
var Score = score
