package memory

import (
	"context"

	"github.com/leaf-idgen/leaf/worker"
)

// Interceptor stands between a caller and a registry. It decides whether and when
// the call is carried out, by calling carryOut, and what the caller learns of it. To
//
//   - fail a call, return an error;
//   - lose the reply, call carryOut and return an error;
//   - black-hole it, wait for ctx and return its error;
//   - deliver it late, keep carryOut for later and return an error.
//
// method is the method's name, e.g. "Put". An Interceptor is called by several
// goroutines at once. What carryOut obtains reaches the caller only if carryOut has
// returned by the time that the Interceptor returns nil.
type Interceptor func(ctx context.Context, method string, carryOut func(context.Context) error) error

// Intercept returns records with i in front of every call but Info and Close.
func Intercept(records worker.Records, i Interceptor) worker.Records {
	return intercepted{records, i}
}

type intercepted struct {
	worker.Records

	via Interceptor
}

// ask is a call that returns a value.
func ask[T any](ctx context.Context, i intercepted, method string, call func(context.Context) (T, error)) (T, error) {
	var none T
	answer := make(chan T, 1)
	err := i.via(ctx, method, func(ctx context.Context) error {
		got, err := call(ctx)
		select {
		case answer <- got:
		default: // carried out once more
		}
		return err
	})
	if err != nil {
		return none, err
	}
	select {
	case got := <-answer:
		return got, nil
	default:
		return none, nil
	}
}

// Namespace implements worker.Records.
func (i intercepted) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	return ask(ctx, i, "Namespace", func(ctx context.Context) (*worker.StoredNamespace, error) {
		return i.Records.Namespace(ctx, want)
	})
}

// Amend implements worker.Records.
func (i intercepted) Amend(ctx context.Context, old, next worker.StoredNamespace) error {
	return i.via(ctx, "Amend", func(ctx context.Context) error { return i.Records.Amend(ctx, old, next) })
}

// Reserved implements worker.Records.
func (i intercepted) Reserved(ctx context.Context) ([]worker.Adoptable, error) {
	return ask(ctx, i, "Reserved", i.Records.Reserved)
}

// List implements worker.Records.
func (i intercepted) List(ctx context.Context) ([]worker.Record, error) {
	return ask(ctx, i, "List", i.Records.List)
}

// Put implements worker.Records.
func (i intercepted) Put(ctx context.Context, r worker.Record) (string, error) {
	return ask(ctx, i, "Put", func(ctx context.Context) (string, error) { return i.Records.Put(ctx, r) })
}

// Announce implements worker.Records.
func (i intercepted) Announce(ctx context.Context, p worker.Peer) error {
	return i.via(ctx, "Announce", func(ctx context.Context) error { return i.Records.Announce(ctx, p) })
}

// Withdraw implements worker.Records.
func (i intercepted) Withdraw(ctx context.Context, p worker.Peer) error {
	return i.via(ctx, "Withdraw", func(ctx context.Context) error { return i.Records.Withdraw(ctx, p) })
}

// Peers implements worker.Records.
func (i intercepted) Peers(ctx context.Context) ([]worker.Peer, error) {
	return ask(ctx, i, "Peers", i.Records.Peers)
}
