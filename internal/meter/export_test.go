package meter

// Results are the values of the label result.
var Results = results
