package leaf

// Alarm codes: stable words for log filters, metrics and pagers. One code is one
// idea; what it is about is the alarm's Subject.
const (
	AlarmRegress       = "regress"       // a store handed out a range below a fence; subject: the tag
	AlarmRow           = "row"           // a tag's row is outside its limits, or its numbers are used up; subject: the tag
	AlarmFormat        = "format"        // the IDs of a tag hardly fit its format any more, or the format cannot be used; subject: the tag
	AlarmStore         = "store"         // a database does not answer; subject: its name
	AlarmExhausted     = "exhausted"     // callers were rejected for want of a range, a layout ends within a year, or fixed worker IDs are nearly used up; subject: the tag, "layout" or "worker IDs"
	AlarmDisk          = "disk"          // a file of the data directory cannot be written; subject: the file
	AlarmFile          = "file"          // a file that unique IDs rest on was deleted or replaced while the node ran; subject: "files"
	AlarmVanished      = "vanished"      // a store's list of tags lacks most of those that were there; subject: its name
	AlarmRule          = "rule"          // a store belongs to another division of tags, or to another cluster, now; subject: its name
	AlarmFence         = "fence"         // the cluster fence does not answer, or was replaced; subject: its name
	AlarmClaim         = "claim"         // no worker ID is held; subject: "worker"
	AlarmClock         = "clock"         // the wall clock stepped, or differs from the peers'; subject: "self" or "peers". Or it does not fit the period of a tag; subject: "periods"
	AlarmAuth          = "auth"          // wrong tokens are refused unheard; subject: "tokens"
	AlarmConfiguration = "configuration" // the configuration on the disk cannot be used, and the node goes on with the one that it has; subject: "reload". Or one of its files does not answer; subject: "reading". Or the keys of opaque IDs are not those of the other nodes; subject: "opaque.keys". Or another node has the address of this one; subject: "node.advertise"
	AlarmRegistry      = "registry"      // the registry of worker IDs does not answer, or that of the owners of strict tags; subject: its name, or "slots", with several databases "slots of NAME"; with " damaged" behind it if records of slots cannot be read
)

// Alarm is a state that an operator should look at. It begins with Raise and ends with
// Clear. Code and Subject together are its identity.
type Alarm struct {
	Code    string // one of the constants
	Subject string // what it is about, e.g. a tag; short and printable
	Text    string // one line: what is wrong, with the values
	Do      string // one line: what the operator should do; "" if it heals by itself
}

// Alarms receives the alarms of an engine. Raise of one that is active already
// replaces its text and is not a new alarm; Clear of one that is not active does
// nothing. Both return at once, never block, never call back into the engine and
// are safe for concurrent use, also under the engine's locks.
type Alarms interface {
	Raise(a Alarm)
	Clear(code, subject string)
}

// NoAlarms discards all alarms.
func NoAlarms() Alarms { return noAlarms{} }

type noAlarms struct{}

func (noAlarms) Raise(Alarm)          {}
func (noAlarms) Clear(string, string) {}
