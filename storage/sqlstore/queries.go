package sqlstore

import "strings"

// queries are the statements of a store, made once.
type queries struct {
	// common are statements that are prepared as soon as one is.
	common []string

	lockLog, clock, log string

	lookLRPs, lookDeployments, lookTasks, lookRequests multi
	lookLeases, lookFences                             multi

	upsertLRPs, updateLRPs, deleteLRPs   multi
	upsertDeployments, deleteDeployments multi
	insertDefinitions, deleteDefinitions multi
	deleteAllDefinitions                 multi
	upsertTasks, deleteTasks             multi
	upsertDomains                        multi
	insertRequests, insertEvents         multi

	parts [len(parts)]mysqlPart

	updateLease, insertLease                   string
	setLog, insertMarker                       string
	identity, gaps, gapAt, insertGap, trimGaps string
	dropGaps, dropEvents                       string
	widenGap, changeEvents                     string
	raiseFloor                                 string
	trimEvents, sweepRequests, sweepMarkers    string
	sweepDomains, raiseEpoch, sweepLeases      string
	findSegment, findMarker, findRequest       string
	rawLRP, rawTask                            string
	asideLRP, asideDeployment, asideDefinition string
	asideTask                                  string
}

var (
	lrpKey  = []string{"process_guid", "idx", "definition_id", "presence"}
	lrpRest = []string{"domain", "cell_id", "state", "tag_epoch", "tag_index", "data"}

	// lrpChanges are what can change in a record that stays on its cell: the
	// index of the cells is left alone.
	lrpChanges = []string{"domain", "state", "tag_epoch", "tag_index", "data"}

	deploymentKey  = []string{"process_guid"}
	deploymentRest = []string{"domain", "update_strategy", "instances", "active_definition_id", "healthy_definition_id", "tag_epoch", "tag_index", "other_definition_ids", "settings"}

	definitionKey = []string{"process_guid", "definition_id"}

	deploymentKinds = []kind{text, text, number, number, text, text, number, number, blob, blob}

	taskKey   = []string{"guid"}
	taskKinds = []kind{text, text, text, number, number, number, blob}
	taskRest  = []string{"domain", "cell_id", "state", "tag_epoch", "tag_index", "data"}
)

func (s *Store) newQueries() queries {
	d, t := s.d, s.table
	lrpKeyKinds := lrpKinds[:len(lrpKey)]
	const tag = "tag_epoch, tag_index"
	aside := "INSERT INTO " + t("quarantine") + " (at, kind, guid, idx, definition_id, presence, reason, data) SELECT "
	lookLeases := d.among("SELECT kind, name, owner, epoch, expires_at, value FROM "+t("leases"), []string{"kind", "name"}, []kind{text, text})
	q := queries{
		lockLog: "SELECT newest, oldest FROM " + t("log") + " WHERE id = 1" + d.lock,
		clock:   "SELECT " + d.clock,
		log:     "SELECT newest, oldest, COALESCE((SELECT MAX(first_seq) FROM " + t("gaps") + "), 0), " + d.clock + " FROM " + t("log") + " WHERE id = 1",

		lookLRPs:        d.among("SELECT process_guid, idx, definition_id, presence, "+tag+" FROM "+t("actual_lrps"), lrpKey, lrpKeyKinds),
		lookDeployments: d.among("SELECT process_guid, "+tag+" FROM "+t("deployments"), deploymentKey, []kind{text}),
		lookTasks:       d.among("SELECT guid, "+tag+" FROM "+t("tasks"), taskKey, []kind{text}),
		lookLeases:      lookLeases,
		lookFences:      multi{d: d, head: lookLeases.head, tail: d.share, columns: lookLeases.columns, kinds: lookLeases.kinds}.ready(),
		updateLease: d.rebind("UPDATE " + t("leases") + " SET owner = ?, epoch = ?, expires_at = ?, value = ? " +
			"WHERE kind = ? AND name = ? AND epoch = ? AND expires_at = ?"),
		insertLease:  d.insertLease(t("leases")),
		lookRequests: d.among("SELECT id, seq FROM "+t("requests"), []string{"id"}, []kind{text}),

		upsertLRPs:        d.upsertRows(t("actual_lrps"), lrpKey, lrpRest, lrpKinds),
		updateLRPs:        d.insert(t("actual_lrps"), append(lrpKey[:len(lrpKey):len(lrpKey)], lrpRest...), lrpKinds, d.upsert(lrpKey, lrpChanges)),
		deleteLRPs:        d.among("DELETE FROM "+t("actual_lrps"), lrpKey, lrpKeyKinds),
		upsertDeployments: d.upsertRows(t("deployments"), deploymentKey, deploymentRest, deploymentKinds),
		deleteDeployments: d.among("DELETE FROM "+t("deployments"), deploymentKey, []kind{text}),
		insertDefinitions: d.insert(t("definitions"), []string{"process_guid", "definition_id", "data"},
			[]kind{text, text, blob}, ""),
		deleteDefinitions:    d.among("DELETE FROM "+t("definitions"), definitionKey, []kind{text, text}),
		deleteAllDefinitions: d.among("DELETE FROM "+t("definitions"), deploymentKey, []kind{text}),
		upsertTasks:          d.upsertRows(t("tasks"), taskKey, taskRest, taskKinds),
		deleteTasks:          d.among("DELETE FROM "+t("tasks"), taskKey, []kind{text}),
		upsertDomains:        d.upsertRows(t("domains"), []string{"name"}, []string{"expires_at"}, []kind{text, number}),
		insertRequests:       d.insert(t("requests"), []string{"id", "seq", "at"}, []kind{text, number, number}, ""),
		insertEvents: d.insert(t("events"), []string{"seq", "n", "at", "token", "data"},
			[]kind{number, number, number, number, blob}, ""),

		identity:     strings.ReplaceAll(d.identity, "{log}", t("log")),
		gaps:         "SELECT after_seq, first_seq FROM " + t("gaps") + " ORDER BY first_seq",
		gapAt:        d.rebind("SELECT after_seq, first_seq FROM " + t("gaps") + " WHERE first_seq > ? AND after_seq <= ?"),
		insertGap:    d.rebind("INSERT INTO " + t("gaps") + " (first_seq, after_seq) VALUES (?, ?)"),
		trimGaps:     d.rebind("DELETE FROM " + t("gaps") + " WHERE first_seq < ?"),
		dropGaps:     d.rebind("DELETE FROM " + t("gaps") + " WHERE first_seq > ? AND first_seq < ?"),
		dropEvents:   d.rebind("DELETE FROM " + t("events") + " WHERE seq > ? AND seq < ?"),
		widenGap:     d.rebind("UPDATE " + t("gaps") + " SET after_seq = ? WHERE first_seq = ?"),
		changeEvents: d.rebind("UPDATE " + t("events") + " SET data = ? WHERE seq = ?"),
		raiseFloor:   d.rebind("UPDATE " + t("leases") + " SET epoch = ? WHERE kind = '' AND name = '' AND epoch < ?"),

		setLog:        d.rebind("UPDATE " + t("log") + " SET newest = ?, oldest = ? WHERE id = 1"),
		insertMarker:  d.rebind("INSERT INTO " + t("markers") + " (token, at) VALUES (?, ?)"),
		trimEvents:    d.rebind("DELETE FROM " + t("events") + " WHERE seq < ?"),
		sweepRequests: d.rebind("DELETE FROM " + t("requests") + " WHERE at < ?"),
		sweepMarkers:  d.rebind("DELETE FROM " + t("markers") + " WHERE at < ?"),
		sweepDomains:  d.rebind("DELETE FROM " + t("domains") + " WHERE expires_at > 0 AND expires_at < ?"),
		// A subquery of its own, as MySQL does not read a table that it changes.
		raiseEpoch: d.rebind("UPDATE " + t("leases") + " SET epoch = (SELECT newest FROM (SELECT MAX(epoch) AS newest FROM " +
			t("leases") + " WHERE expires_at < ?) AS ended) WHERE kind = '' AND name = ''"),
		sweepLeases: d.rebind("DELETE FROM " + t("leases") + " WHERE expires_at < ? AND kind <> ''"),

		findSegment: d.rebind("SELECT COALESCE(MAX(seq), 0) FROM " + t("events") + " WHERE seq > ? AND token = ?"),
		findMarker:  d.rebind("SELECT COUNT(*) FROM " + t("markers") + " WHERE token = ?"),
		findRequest: d.rebind("SELECT seq FROM " + t("requests") + " WHERE id = ?"),

		rawLRP: d.rebind("SELECT process_guid, idx, definition_id, presence, data FROM " + t("actual_lrps") +
			" WHERE process_guid = ? AND idx = ? AND definition_id = ? AND presence = ?"),
		rawTask: d.rebind("SELECT guid, data FROM " + t("tasks") + " WHERE guid = ?"),
		asideLRP: d.rebind(aside + "?, 'actual_lrp', process_guid, idx, definition_id, presence, ?, data FROM " + t("actual_lrps") +
			" WHERE process_guid = ? AND idx = ? AND definition_id = ? AND presence = ?"),
		asideDeployment: d.rebind(aside + "?, 'deployment', process_guid, -1, active_definition_id, 0, ?, settings FROM " +
			t("deployments") + " WHERE process_guid = ?"),
		asideDefinition: d.rebind(aside + "?, 'definition', process_guid, -1, definition_id, 0, ?, data FROM " +
			t("definitions") + " WHERE process_guid = ?"),
		asideTask: d.rebind(aside + "?, 'task', guid, -1, '', 0, ?, data FROM " + t("tasks") + " WHERE guid = ?"),
	}
	if d.dir == "mysql" {
		for i := range parts {
			q.parts[i] = s.mysqlPart(parts[i])
		}
	}
	if d.arrays {
		for _, m := range []multi{
			q.lookLRPs, q.lookDeployments, q.lookTasks, q.lookLeases, q.lookFences, q.lookRequests,
			q.upsertLRPs, q.updateLRPs, q.deleteLRPs, q.upsertDeployments, q.insertDefinitions, q.deleteDefinitions,
			q.upsertTasks, q.deleteTasks, q.upsertDomains, q.insertRequests, q.insertEvents,
		} {
			q.common = append(q.common, m.query(1))
		}
		q.common = append(q.common, q.updateLease, q.insertLease, q.setLog, q.insertMarker, q.trimEvents, q.trimGaps, q.sweepRequests, q.sweepMarkers, q.sweepDomains, q.raiseEpoch, q.sweepLeases)
	}
	return q
}

// insertLease is a statement that adds a lease if there is none and if the row of
// the forgotten ones has an epoch. It waits for a transaction that forgets leases.
func (d *dialect) insertLease(table string) string {
	columns := []string{"kind", "name", "owner", "epoch", "expires_at", "value"}
	values := make([]string, len(columns))
	for i, k := range []kind{text, text, text, number, number, blob} {
		if values[i] = "?"; d.arrays {
			values[i] += "::" + string(k)
		}
	}
	insert, ignore := "INSERT INTO ", " ON CONFLICT DO NOTHING"
	if d.dir == "mysql" {
		insert, ignore = "INSERT IGNORE INTO ", ""
	}
	return d.rebind(insert + table + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM " + table + " AS forgotten WHERE forgotten.kind = '' AND forgotten.name = '' AND forgotten.epoch = ?" + d.share + ignore)
}
