package leaf

import "context"

// Admission decides whether a request may wait for IDs. It is under [AdmissionKey] in the
// request's context.
type Admission interface {
	// Admit returns nil if the request may wait, else the error that the request is to end
	// with. The request's goroutine calls it, with no lock held. It does not block, and its
	// answer stays the same.
	Admit() error
}

// AdmissionKey is the context key of the [Admission] of a request.
type AdmissionKey struct{}

// WaitKey is the context key of a func() that hears of it each time that a request is about to
// wait: a server then writes the replies to other requests that it has gathered. The request's
// goroutine calls it, with no lock held. It may take long.
type WaitKey struct{}

// Waits calls the function of [WaitKey] of ctx, if there is one. [Admit] does so first. An
// [Issuer] that lets a request wait without admission, as for another node, calls it before.
func Waits(ctx context.Context) {
	if hear, ok := ctx.Value(WaitKey{}).(func()); ok {
		hear()
	}
}

// Admit asks the Admission of ctx, if there is one. An [Issuer] calls it before a request
// waits, and not for a request that finds IDs in stock.
func Admit(ctx context.Context) error {
	Waits(ctx)
	if a, ok := ctx.Value(AdmissionKey{}).(Admission); ok {
		return a.Admit()
	}
	return nil
}
