package cli

// DropBelow is dropBelow for a test whose node answers as no real one does at will.
var DropBelow = dropBelow
