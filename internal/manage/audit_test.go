package manage_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// audited is a site with an audit log, and with nothing that an operation could work on but what
// it embeds.
type audited struct {
	manage.StoreSite

	log *manage.AuditLog
}

func (a audited) AuditLog() *manage.AuditLog { return a.log }

// auditLog returns a log in s, which may be nil, and what it missed.
func auditLog(s audit.Store) (*manage.AuditLog, *[]audit.Entry) {
	missed := &[]audit.Entry{}
	return &manage.AuditLog{
		Store: s, Node: "n1", Keep: time.Hour, Timeout: time.Second, Actor: manage.Actor{Who: "nobody", Address: "nowhere"},
		Missed: func(e audit.Entry, _ error) { *missed = append(*missed, e) },
	}, missed
}

// TestEveryChangeIsRecorded: what is not a question is a change, and says what it is. Only
// issued IDs are not recorded.
func TestEveryChangeIsRecorded(t *testing.T) {
	t.Parallel()
	log, missed := auditLog(nil)
	seen := map[string]bool{}
	for _, op := range manage.Operations() {
		*missed = nil
		_, _ = manage.On(struct{ manage.Audited }{audited{log: log}}).Do(t.Context(), reflect.Zero(op.Request).Interface()) // refused: there is nothing to work on
		issues := op.Request == reflect.TypeFor[manage.Next]() || op.Request == reflect.TypeFor[manage.NextSnowflake]()
		want := 1
		if strings.HasPrefix(op.Route, "GET ") || issues {
			want = 0
		}
		if len(*missed) != want {
			t.Errorf("%s: %d entries, want %d", op.Route, len(*missed), want)
			continue
		}
		for _, e := range *missed {
			if e.Operation == "" || e.Object == "" || e.Who != "nobody" || e.Result == audit.Done || seen[e.Operation+e.Object] {
				t.Errorf("%s: %+v", op.Route, e)
			}
			seen[e.Operation+e.Object] = true
		}
	}
}

// TestAuditSaysWhatChanged: an entry has who asked, from where, what was there before, what is
// there now, and the outcome, also of a change that was refused.
func TestAuditSaysWhatChanged(t *testing.T) {
	t.Parallel()
	s := memory.New()
	log, missed := auditLog(s)
	b := manage.On(audited{site{catalog: catalogOf(t, s)}, log})
	ctx := manage.WithActor(t.Context(), manage.Actor{Who: "token ops", Address: "192.0.2.1:7"})
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}))
	must(manage.Ask(ctx, b, manage.SetTag{Name: "order", Change: segment.Change{Step: new(int64(20)), Description: new("new")}}))
	must(manage.Ask(ctx, b, manage.SetTagLimit{Name: "order", LimitChange: manage.LimitChange{Rate: new(int64(5))}}))
	must(manage.Ask(ctx, b, manage.SetTagLimit{Name: "order", LimitChange: manage.LimitChange{Rate: new(int64(0)), Blocked: new(true)}}))
	must(manage.Ask(ctx, b, manage.SetClientLimit{Name: "shop", LimitChange: manage.LimitChange{Quota: new(int64(7))}}))
	must(nil, manage.Tell(ctx, b, manage.DeleteTag{Name: "order"}))
	_, refused := manage.Ask(ctx, b, manage.SetTag{Name: "order", Change: segment.Change{Step: new(int64(30))}})
	if !errors.Is(refused, leaf.ErrUnknownTag) {
		t.Fatal(refused)
	}
	must(manage.Ask(ctx, b, manage.ListTags{}))
	want := []audit.Entry{
		{Operation: "tag set", Object: "tag order", To: `{"step":30}`, Result: refused.Error()},
		{Operation: "tag delete", Object: "tag order", From: `{"description":"new","max_id":"1","step":20}`, Result: audit.Done},
		{Operation: "limit set", Object: "client shop", From: `{"quota":"0"}`, To: `{"quota":"7"}`, Result: audit.Done},
		{Operation: "limit set", Object: "tag order", From: `{"blocked":false,"rate":"5"}`, To: `{"blocked":true,"rate":"0"}`, Result: audit.Done},
		{Operation: "limit set", Object: "tag order", From: `{"rate":"0"}`, To: `{"rate":"5"}`, Result: audit.Done},
		{Operation: "tag set", Object: "tag order", From: `{"description":"","step":10}`, To: `{"description":"new","step":20}`, Result: audit.Done},
		{Operation: "tag create", Object: "tag order", To: `{"start":"1","step":10,"tag":"order"}`, Result: audit.Done},
	}
	for i := range want {
		want[i].Node, want[i].Who, want[i].Address = "n1", "token ops", "192.0.2.1:7"
	}
	page, err := manage.Ask(ctx, b, manage.ListAudit{Limit: 100})
	if err != nil || page.Next != "" || len(*missed) > 0 {
		t.Fatalf("%v, next %q, missed %v", err, page.Next, *missed)
	}
	if diff := cmp.Diff(want, page.Entries, cmpopts.IgnoreFields(audit.Entry{}, "ID", "Time")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page, err = manage.Ask(ctx, b, manage.ListAudit{Limit: 2, Object: manage.ObjectOfTag("order"), Since: page.Entries[5].Time.Format(time.RFC3339Nano)})
	if err != nil || len(page.Entries) != 2 || page.Next != page.Entries[1].ID {
		t.Errorf("a page of one tag: %+v, %v", page, err)
	}
	for _, q := range []manage.ListAudit{{}, {Limit: audit.MaxPage + 1}, {Limit: 1, Since: "yesterday"}, {Limit: 1, Before: "x"}} {
		if _, err := manage.Ask(ctx, b, q); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// TestChangeBeforeTheDatabaseFails: the row is written, and then the database does not answer any
// more. The error and the audit log say that the change is made.
func TestChangeBeforeTheDatabaseFails(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]any{
		"create": manage.CreateTag{NewRow: segment.NewRow{Tag: "new", Start: 7, Step: 10}},
		"set":    manage.SetTag{Name: "order", Change: segment.Change{Step: new(int64(20))}},
		"delete": manage.DeleteTag{Name: "order"},
	} {
		for failed, told := range map[string]error{"to tell the node": errors.New("no answer"), "to read the row": nil} {
			if name == "delete" && told == nil {
				continue // nothing is read
			}
			t.Run(name+", then it fails "+failed, func(t *testing.T) {
				t.Parallel()
				s := memory.New()
				s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 10})
				catalog := catalogOf(t, s)
				catalog.TagChanged = func(context.Context, string) error {
					catalog.Stores = []manage.Store{silentStore{s}}
					return manage.StoreError(told)
				}
				log, missed := auditLog(s)
				_, err := manage.On(audited{site{catalog: catalog}, log}).Do(t.Context(), request)
				if !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "the change is made") {
					t.Errorf("got %v, want an error that says that the change is made", err)
				}
				entries, _, err := s.Entries(t.Context(), audit.Query{Limit: 10})
				if err != nil || len(*missed) > 0 || len(entries) != 1 || entries[0].Result != audit.Done {
					t.Errorf("the audit log has %+v, %v", entries, err)
				}
			})
		}
	}
}

// silentStore does not answer to the question for a row.
type silentStore struct{ *memory.Store }

func (silentStore) Lookup(context.Context, string) (segment.Row, error) {
	return segment.Row{}, errors.New("no answer")
}

// TestChangeWithoutAuditLog: a change that cannot be recorded stands, and is told of. A caller
// that has gone changes nothing of it.
func TestChangeWithoutAuditLog(t *testing.T) {
	t.Parallel()
	s := memory.New()
	log, missed := auditLog(brokenAudit{s, errors.New("no connection")})
	b := manage.On(audited{site{catalog: catalogOf(t, s)}, log})
	if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); err != nil {
		t.Fatal(err)
	}
	if _, err := manage.Ask(t.Context(), b, manage.GetTag{Name: "order"}); err != nil || len(*missed) != 1 || (*missed)[0].Object != "tag order" {
		t.Errorf("%v, missed %+v", err, *missed)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	log, missed = auditLog(s)
	_ = manage.Tell(gone, manage.On(audited{site{catalog: catalogOf(t, s)}, log}), manage.DeleteTag{Name: "order"})
	if page, err := manage.Ask(t.Context(), manage.On(audited{site{}, log}), manage.ListAudit{Limit: 1}); err != nil || len(page.Entries) != 1 || len(*missed) > 0 {
		t.Errorf("after its caller left: %+v, %v, missed %+v", page, err, *missed)
	}
	log, _ = auditLog(nil)
	if _, err := manage.Ask(t.Context(), manage.On(audited{log: log}), manage.ListAudit{Limit: 1}); !errors.Is(err, leaf.ErrDisabled) {
		t.Errorf("a log without a database: %v", err)
	}
}

type brokenAudit struct {
	audit.Store

	err error
}

func (b brokenAudit) Record(context.Context, audit.Entry, time.Duration) error { return b.err }

func catalogOf(t *testing.T, s *memory.Store) *manage.Catalog {
	t.Helper()
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &manage.Catalog{
		Stores: []manage.Store{s}, Router: router, Timeout: time.Second, Mark: func(string) fence.Mark { return fence.Mark{} },
		TagChanged: func(context.Context, string) error { return nil },
	}
}
