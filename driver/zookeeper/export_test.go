package zookeeper

// The parsers, for their tests.
var (
	ParseChild     = parseChild
	ChildName      = childName
	ParseTimestamp = parseTimestamp
	SplitAddress   = splitAddress
	Escape         = escape
	ParseVersions  = func(text string) (string, bool) { v, ok := parseVersions(text); return v.String(), ok }
	ParsePool      = func(text string) (string, error) { v, err := parsePoolVersion(text); return v.String(), err }
)
