package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"
)

// A process has one limit of open files for everything, and a public connection needs no
// token. So the public listeners share what is left once the parts of a node that IDs rest
// on have theirs: files, databases, registries, administration.
const (
	ownFiles     = 64 // data directory, listeners, registry, cluster fence, alarms, peers
	refusedConns = 64 // per public listener, being told that there is no room
	leastConns   = 16 // per public listener, however low the limit is
)

// bound is how many connections the listener of a section takes at once.
type bound struct {
	section string
	conns   int64
}

// bounds are those of the listeners that clients reach, then that of the administrator's.
type bounds []bound

// asked returns what c wants; a server that is off wants nothing.
func asked(c config.Config) (all bounds) {
	for _, l := range c.Listeners() {
		if l.Addr == config.AddrOff && l.Section != config.SectionAdmin { // its socket stays
			l.MaxConns = 0
		}
		all = append(all, bound{l.Section, l.MaxConns})
	}
	return all
}

// of returns the bound of a section.
func (b bounds) of(section string) int64 {
	return b[slices.IndexFunc(b, func(one bound) bool { return one.section == section })].conns
}

func (b bounds) sum() (all int64) {
	for _, one := range b {
		all += one.conns
	}
	return all
}

// reserve returns how many descriptors are no connections of clients.
func reserve(c config.Config) int64 {
	stores := max(len(c.Stores), 1)
	return ownFiles + int64(stores)*(c.Segment.MaxLoads+spareConns) + int64(len(protocols()))*refusedConns
}

// within returns bounds that fit into a limit of open files, each public one in proportion
// to what it wants. 0: there is no limit.
func (b bounds) within(files uint64, reserve int64) (fit bounds) {
	if files == 0 || files >= uint64(b.sum()+reserve) {
		return b
	}
	public := b[:len(b)-1]
	admin := min(b.of(config.SectionAdmin), max(int64(files)/8, leastConns))
	room := max(int64(files)-reserve-admin, 0)
	for _, one := range public {
		fit = append(fit, bound{one.section, min(one.conns, max(one.conns*room/public.sum(), leastConns))})
	}
	return append(fit, bound{config.SectionAdmin, admin})
}

// boundConnections returns the bounds of the configuration, lowered to what the limit of
// open files allows.
func (a *App) boundConnections() bounds {
	return asked(a.cfg).within(a.opts.openFiles(), reserve(a.cfg))
}

// logConnections logs which bounds were lowered: a warning for bounds that the configuration
// sets, and an information for defaults, which are meant to be high.
func (a *App) logConnections() {
	asked := asked(a.cfg)
	var set, defaults []string
	for _, is := range a.conns {
		key := is.section + ".max-conns"
		if is.section == config.SectionAdmin {
			key = "administration" // a bound without a key
		}
		text := fmt.Sprintf("%s=%d instead of %d", key, is.conns, asked.of(is.section))
		switch {
		case is.conns == asked.of(is.section):
		case a.opts.IsSet(key):
			set = append(set, text)
		default:
			defaults = append(defaults, text)
		}
	}
	const text = "the limit of open files lowers the limits of connections, so that files, databases and administration keep theirs"
	args := func(lowered []string) []any {
		return []any{
			"limit", a.opts.openFiles(), "lowered", strings.Join(lowered, ", "),
			"do", fmt.Sprintf("raise the limit (ulimit -n, LimitNOFILE=) to %d, or lower these keys", asked.sum()+reserve(a.cfg)),
		}
	}
	if len(set) > 0 {
		a.log.Warn(text, args(set)...)
	}
	if len(defaults) > 0 {
		a.log.Info(text, args(defaults)...)
	}
}
