package sqldb

import (
	"fmt"
	"strings"
)

// recordStatements are the texts for the tables of a registry, or for those of slots: see Store.Slots.
type recordStatements struct {
	claims, bounds, names string // the tables

	namespace       string // one row, or none
	ownNamespace    string // the same, and the ID of the cluster
	insertNamespace string // name, fingerprint, issue_from, incarnation, given
	nameNamespace   string // incarnation, where there is none
	amendNamespace  string // issue_from, given, incarnation, old issue_from, old given
	count           string // incarnation
	incarnation     string

	list string // all claims and bounds, see rowOf

	lockBound   string // bound, version of a row: id
	insertBound string // id, bound, version
	updateBound string // bound, new version, id, old version

	lockClaim   string // all of a row: id
	insertClaim string // id, address, nonce, floor, bound, released, version
	updateClaim string // address, nonce, floor, bound, released, new version, id, old version

	announce string // nonce, address, clock, number, lease in ms
	withdraw string // nonce
	peers    string
	expired  string // nonces: how long ago in ms
	sweep    string // nonce, how long ago in ms
}

// workerTable is the table of claims of worker IDs.
const workerTable = "leaf_worker"

// recordStatements returns the texts for the tables whose names begin with that of the table of claims.
func (d *dialect) recordStatements(claims string) recordStatements {
	bounds, names, peers := claims+"_bound", claims+"_namespace", claims+"_peer"
	const claim = "address, nonce, floor, bound, released, version"
	const namespace = "SELECT name, fingerprint, issue_from, incarnation, given"
	set := func(columns string) string {
		return "SET " + strings.ReplaceAll(columns, ",", " = ?,") + " = ?, update_time = CURRENT_TIMESTAMP WHERE id = ? AND version = ?"
	}
	return recordStatements{
		claims: claims, bounds: bounds, names: names,

		namespace:       namespace + " FROM " + names,
		ownNamespace:    namespace + ", " + clusterValue + " FROM " + names,
		insertNamespace: d.bind("INSERT INTO " + names + " (id, name, fingerprint, issue_from, incarnation, given, update_time) VALUES (1, ?, ?, ?, ?, ?, CURRENT_TIMESTAMP)"),
		nameNamespace:   d.bind("UPDATE " + names + " SET incarnation = ?, update_time = CURRENT_TIMESTAMP WHERE id = 1 AND incarnation = ''"),
		amendNamespace:  d.bind("UPDATE " + names + " SET issue_from = ?, given = ?, update_time = CURRENT_TIMESTAMP WHERE id = 1 AND incarnation = ? AND issue_from = ? AND given = ?"),
		count:           d.bind("UPDATE " + names + " SET given = given + 1, update_time = CURRENT_TIMESTAMP WHERE id = 1 AND incarnation = ?"),
		incarnation:     "SELECT incarnation FROM " + names,

		// One statement sees one state of both tables.
		list: "SELECT id, false, '', '', 0, bound, false, version FROM " + bounds +
			" UNION ALL SELECT id, true, " + claim + " FROM " + claims,

		lockBound:   d.bind("SELECT bound, version FROM " + bounds + " WHERE id = ?" + d.forUpdate),
		insertBound: d.bind("INSERT INTO " + bounds + " (id, bound, version, update_time) VALUES (?, ?, ?, CURRENT_TIMESTAMP)"),
		updateBound: d.bind("UPDATE " + bounds + " " + set("bound, version")),

		lockClaim:   d.bind("SELECT " + claim + " FROM " + claims + " WHERE id = ?" + d.forUpdate),
		insertClaim: d.bind("INSERT INTO " + claims + " (id, " + claim + ", extends, update_time) VALUES (?, ?, ?, ?, ?, ?, ?, false, CURRENT_TIMESTAMP)"),
		updateClaim: d.bind("UPDATE " + claims + " " + set(claim)),

		announce: d.bind("INSERT INTO " + peers + " (nonce, address, clock, number, expires, update_time) VALUES (?, ?, ?, ?, " +
			d.now + " + ?, CURRENT_TIMESTAMP)" + d.onConflict("nonce", "address", "clock", "number", "expires", "update_time")),
		withdraw: d.bind("DELETE FROM " + peers + " WHERE nonce = ?"),
		peers:    "SELECT nonce, address, clock, number FROM " + peers + " WHERE expires > " + d.now,
		expired:  d.bind("SELECT nonce FROM " + peers + " WHERE expires < " + d.now + " - ?"),
		sweep:    d.bind("DELETE FROM " + peers + " WHERE nonce = ? AND expires < " + d.now + " - ?"),
	}
}

// onConflict makes an INSERT overwrite the columns of a row that has its key.
func (d *dialect) onConflict(key string, columns ...string) string {
	clause := d.upsert
	if strings.Contains(clause, "%s") {
		clause = fmt.Sprintf(clause, key)
	}
	for i, c := range columns {
		columns[i] = c + " = " + fmt.Sprintf(d.proposed, c)
	}
	return clause + strings.Join(columns, ", ")
}
