package rules_test

import "testing"

// TestAlerts causes the condition of every alert on real nodes, sees it fire, removes the
// condition, and sees it end.
func TestAlerts(t *testing.T) {
	t.Parallel()
	t.Run("nodes", func(t *testing.T) {
		for name, run := range map[string]func(*testing.T){
			"the database is cut off":           databaseGone,
			"rows are broken":                   rowsBroken,
			"the disk is full, a file is gone":  filesGone,
			"limits are reached":                limitsReached,
			"etcd is cut off":                   coordinatorGone,
			"a certificate ends":                certificateEnds,
			"the registry is cut off":           registryGone,
			"an owner cannot be reached":        ownerUnreached,
			"the clocks of two nodes are apart": clocksDiffer,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t)
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, a := range newPrometheus(t, func() string { return "" }).alerts {
		if name := a.Alert; !seen.fired[name] || !seen.cleared[name] {
			t.Errorf("%s: fired %v, cleared %v: no test causes its condition", name, seen.fired[name], seen.cleared[name])
		}
	}
}
