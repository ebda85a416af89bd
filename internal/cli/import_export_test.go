package cli

// DropBelow is dropBelow for a test whose node answers as no real one does at will.
var DropBelow = dropBelow

// PrintPlans prints plans as an import that writes nothing.
var PrintPlans = printPlans
