package manage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// What each changing request says of itself, and what it is about to replace (was). A request
// without was replaces nothing, or its reply says what.

func tagChange(operation, tag string, to any) Change {
	return Change{Operation: operation, Object: ObjectOfTag(tag), To: to}
}

// ObjectOfTag is the object of the changes of a tag and of its limit.
func ObjectOfTag(tag string) string { return "tag " + tag }

func (q CreateTag) change() Change { return tagChange("tag create", q.Tag, q.NewRow) }
func (q SetTag) change() Change    { return tagChange("tag set", q.Name, q.Change) }
func (q DeleteTag) change() Change { return tagChange("tag delete", q.Name, nil) }
func (q RepairTag) change() Change { return tagChange("tag repair", q.Name, q) }

func (q CreateSequence) change() Change { return tagChange("sequence create", q.Name, q) }
func (q DeleteSequence) change() Change { return tagChange("sequence delete", q.Name, nil) }
func (q RepairSequence) change() Change { return tagChange("sequence repair", q.Name, nil) }

func (r SequenceRepair) change(c *Change) {
	if len(r.Rows) > 0 {
		c.To = map[string]string{"from": r.Rows[0].Tag, "to": r.Rows[len(r.Rows)-1].Tag, "rows": strconv.Itoa(len(r.Rows))}
	}
}

func (q SetTag) was(ctx context.Context, c *Catalog) (any, error) { return c.rowBefore(ctx, q.Name) }

func (q DeleteTag) was(ctx context.Context, c *Catalog) (any, error) { return c.rowBefore(ctx, q.Name) }

func (q RepairTag) was(ctx context.Context, c *Catalog) (any, error) { return c.rowBefore(ctx, q.Name) }

// rowBefore returns the fields of a tag's row that a change can replace, as they are before it.
func (c *Catalog) rowBefore(ctx context.Context, tag string) (any, error) {
	t, err := c.tag(ctx, tag)
	return struct {
		MaxID       int64  `json:"max_id,string"`
		Step        int64  `json:"step"`
		Description string `json:"description"`
		segment.Options
	}{t.MaxID, t.Step, t.Description, t.Options}, err
}

func (r Repair) change(c *Change) {
	untold := strings.Join(r.Plan.Untold, " ")
	if r.Plan.Alone != "" {
		untold = "all other nodes"
	}
	c.To = struct {
		MaxID  int64  `json:"max_id,string"`
		Above  int64  `json:"above,string"`
		First  int64  `json:"first,string"`
		Untold string `json:"untold,omitempty"` // see takeover.Lowest
	}{r.MaxID, r.Plan.Above, r.Plan.First, untold}
}

func (q SetTagLimit) change() Change {
	return Change{Operation: "limit set", Object: ObjectOfTag(q.Name), To: q.LimitChange}
}

func (q SetClientLimit) change() Change {
	return Change{Operation: "limit set", Object: "client " + q.Name, To: q.LimitChange}
}

func (q SetTagLimit) was(ctx context.Context, c *Catalog) (any, error) {
	return c.limitBefore(ctx, LimitOfTag, q.Name)
}

func (q SetClientLimit) was(ctx context.Context, c *Catalog) (any, error) {
	return c.limitBefore(ctx, LimitOfClient, q.Name)
}

// limitBefore names all fields, also those without a limit.
func (c *Catalog) limitBefore(ctx context.Context, kind, name string) (any, error) {
	rule, err := c.limitRule(ctx, kind, name)
	return limit.ChangeTo(rule), err
}

func workerObject(number int64) string { return fmt.Sprintf("worker %d", number) }

func (q ReleaseWorker) change() Change {
	return Change{Operation: "worker release", Object: workerObject(q.Number)}
}

func (q ReleaseWorker) was(ctx context.Context, r *Registry) (any, error) {
	records, err := r.Opened.List(ctx)
	i := slices.IndexFunc(records, func(r worker.Record) bool { return r.Number == q.Number })
	if err != nil || i < 0 {
		return nil, err
	}
	return Worker{Number: q.Number, Address: records[i].Address, Floor: records[i].Floor, Bound: records[i].Bound, Released: records[i].Released}, nil
}

func (InitWorkers) change() Change {
	return Change{Operation: "worker init", Object: "registry of worker IDs"}
}

// thisNode is the object of changes of the node that carries them out.
const thisNode = "node"

func (ConfirmClock) change() Change {
	return Change{Operation: "worker confirm-clock", Object: thisNode}
}

func (r ClockReply) change(c *Change) { c.To = r }

func (q SetWeight) change() Change {
	return Change{Operation: "node weight", Object: thisNode, To: map[string]int{"weight": q.Weight}}
}

func (q SetWeight) was(_ context.Context, d *Directory) (any, error) { //nolint:unparam // the form of all was
	return d.describe(d.Announcer.Status().Node), nil
}

func (q Drain) change() Change {
	c := Change{Operation: "drain", Object: thisNode}
	if q.Delay >= 0 {
		c.To = map[string]string{"delay": q.Delay.String()}
	}
	return c
}

func (ReloadConfig) change() Change { return Change{Operation: "reload", Object: thisNode} }

// change names the keys whose values take effect now. Reload hides secrets already.
func (r Reload) change(c *Change) {
	from, to := map[string]string{}, map[string]string{}
	for _, d := range r.Changed {
		from[d.Key], to[d.Key] = d.Now, d.Then
	}
	c.From, c.To = from, to
}
