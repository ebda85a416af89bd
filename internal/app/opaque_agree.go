package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/opaque"
)

// Two nodes with different keys of one version make the same opaque ID of two IDs, and neither can
// see it. So the first node that encodes with a key records its SHA-256 in the database, and all
// others compare theirs before they encode anything. A node that encodes goes on comparing: a database
// that was restored, or an administrator, may have taken the record away, and a node with another key
// may have recorded its own. A node without a database compares nothing.

const (
	firstAgreement   = 100 * time.Millisecond
	longestAgreement = 5 * time.Second
	agreeSoon        = time.Second
	agreeAgain       = 2 * time.Second // of a key that encodes
	agreeNothing     = time.Minute     // the same without leaf_meta: a server may log each question about a missing table
)

var (
	errNotCompared = fmt.Errorf("%w: the key of opaque IDs is not compared with those of the other nodes yet", leaf.ErrNotReady)
	errOtherKey    = fmt.Errorf("%w: the other nodes make opaque IDs with another key; the alarm of this node says what to do", leaf.ErrNotReady)
	errOtherSize   = fmt.Errorf("%w", errOtherKey)
)

// agreement is what nodes must have in common: its name in the database, and what stands for it there.
type agreement struct {
	name, value string
	other       error // of a node that has something else
}

// agreements are those of a ring. The size comes first: opaque IDs of two sizes can be equal although the
// versions of their keys are not.
func agreements(ring *opaque.Ring) []agreement {
	size := fmt.Sprintf("bits %d, version-bits %d", ring.Bits, ring.VersionBits)
	return []agreement{
		{"opaque_size", size, errOtherSize},
		{fmt.Sprintf("opaque_key_%d", ring.Issue), fmt.Sprintf("%s, sha256 %x", size, sha256.Sum256(ring.Keys[ring.Issue])), errOtherKey},
	}
}

// agreeOnKeys compares each key that is to encode, and again while it encodes, until ctx ends.
func (a *App) agreeOnKeys(ctx context.Context) {
	rt, warned := leaf.SystemRuntime(), false
	for pause := firstAgreement; a.opaque.shared; pause = min(2*pause, longestAgreement) {
		kept := a.settleKeys(ctx)
		wait := pause
		switch ring, held := a.opaque.formats.Held(); {
		case ring == nil:
			wait, pause = 0, firstAgreement // until there is a ring
		case held == nil && !kept:
			wait, pause = agreeNothing, firstAgreement
		case held == nil:
			wait, pause = agreeAgain, firstAgreement
		case pause == longestAgreement && !warned:
			warned = true
			a.log.Warn("this node makes no opaque IDs, because it cannot compare its key with those of the other nodes, in table leaf_meta of the first database, or has another one; it tries again every 5 s")
		}
		if rt.Wait(ctx, a.opaque.wake, wait) != nil {
			return
		}
	}
}

// settleKeys compares the key of the ring in force. While the database does not answer, a ring that
// encodes goes on, and a ring that does not encode yet keeps waiting. kept is false if the database
// answers and has no leaf_meta.
func (a *App) settleKeys(ctx context.Context) (kept bool) {
	ring, held := a.opaque.formats.Held()
	if ring == nil {
		a.alarms.Clear(leaf.AlarmConfiguration, format.KeysKey)
		return true
	}
	if !a.opaque.shared {
		return true
	}
	kept, err := a.agreeOnce(ctx, ring)
	if err == nil && held != nil || errors.Is(err, errOtherKey) {
		a.opaque.formats.Settle(ring, err)
	}
	return kept || err != nil
}

// notCompared is what stands for compareSoon before the databases are contacted.
func notCompared(*opaque.Ring) error { return errNotCompared }

// compareSoon is compareKey of a ring that is not in force yet. It waits for at most agreeSoon.
func (a *App) compareSoon(ring *opaque.Ring) error {
	ctx, cancel := context.WithTimeout(context.Background(), agreeSoon)
	defer cancel()
	_, err := a.compareKey(ctx, ring)
	return err
}

// compareKey is errOtherKey if the database has another key of the ring's version, or errOtherSize, which is
// errOtherKey too. Every other error says that it is not known. Without the table, as beside Java servers,
// nothing can be compared, and kept is false.
func (a *App) compareKey(ctx context.Context, ring *opaque.Ring) (kept bool, err error) {
	for _, common := range agreements(ring) {
		recorded, err := a.dbs.stores[0].Agree(ctx, common.name, common.value)
		if err == nil && recorded != "" && recorded != common.value {
			err = common.other
		}
		if err != nil || recorded == "" {
			return false, err
		}
	}
	return true, nil
}

// agreeOnce is compareKey of the ring in force. It raises or ends the alarm.
func (a *App) agreeOnce(ctx context.Context, ring *opaque.Ring) (kept bool, err error) {
	ctx, cancel := leaf.SystemRuntime().WithTimeout(ctx, manage.RegistryTimeout)
	defer cancel()
	kept, err = a.compareKey(ctx, ring)
	switch {
	case err == nil:
		a.alarms.Clear(leaf.AlarmConfiguration, format.KeysKey)
	case errors.Is(err, errOtherKey):
		a.alarms.Raise(otherKeyAlarm(ring, errors.Is(err, errOtherSize), a.dbs.stores[0].forgetAgreed))
	default:
		a.log.Debug("the key of opaque IDs could not be compared", "error", err)
	}
	return kept, err
}

// otherKeyAlarm says what to do about a ring that is not the one of the other nodes. forget is forgetAgreed of the first store,
// which has the record of their key.
func otherKeyAlarm(ring *opaque.Ring, size bool, forget func(name string, all bool) string) leaf.Alarm {
	text := fmt.Sprintf("this node makes no opaque IDs, because its key %d is not the one of the other nodes: with both, two IDs could get one opaque ID", ring.Issue)
	remove := forget(fmt.Sprintf("opaque_key_%d", ring.Issue), false)
	both := "run leaf opaque key with the file of the other nodes until it adds a version that the file of this node has not had, and let that key encode there, as docs/OPAQUE.md says. " +
		"Then add its lines key and used to the file of this node, with its version in the line issue"
	if size {
		text = fmt.Sprintf("this node makes no opaque IDs, because its file of keys has bits %d and version-bits %d, and that of the other nodes has not: with both, two IDs could get one opaque ID", ring.Bits, ring.VersionBits)
		remove = forget("opaque_", true)
		both = "remove opaque.keys from the configuration of this node"
	}
	return leaf.Alarm{
		Code: leaf.AlarmConfiguration, Subject: format.KeysKey, Text: text,
		Do: "if no opaque ID of this node's key is in use, stop this node, remove file opaque.json of its data directory, give it the file of keys that the other nodes have, and start it. " +
			"If instead no opaque ID of theirs is in use, stop the other nodes, remove the record of their key " + remove +
			", and remove opaque.json of each, give it this node's file of keys and start it. If opaque IDs of both are in use, " + both,
	}
}
