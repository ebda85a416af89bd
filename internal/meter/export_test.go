package meter

// Results are the values of the label result, and MaxResults is the room for them.
var Results = results

// MaxResults is the room for Results.
const MaxResults = maxResults
