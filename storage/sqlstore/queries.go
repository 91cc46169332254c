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

// lrpChanges are what can change in a record that stays on its cell: the index
// of the cells is left alone.
var lrpChanges = []string{"domain", "state", "tag_epoch", "tag_index", "data"}

func (s *Store) newQueries() queries {
	d, t := s.d, s.table
	const tag = "tag_epoch, tag_index"
	name := []kind{text}
	aside := "INSERT INTO " + t("quarantine") + " (at, kind, guid, idx, definition_id, presence, reason, data) SELECT "
	lookLeases := d.among("SELECT kind, name, owner, epoch, expires_at, value FROM "+t("leases"), leaseTable.key, leaseTable.keyKinds())
	insert := func(x *table) multi { return d.insert(t(x.name), x.columns(), x.kinds, "") }
	upsert := func(x *table) multi { return d.insert(t(x.name), x.columns(), x.kinds, d.upsert(x.key, x.rest)) }
	q := queries{
		lockLog: "SELECT newest, oldest FROM " + t("log") + " WHERE id = 1" + d.lock,
		clock:   "SELECT " + d.clock,
		log:     "SELECT newest, oldest, COALESCE((SELECT MAX(first_seq) FROM " + t("gaps") + "), 0), " + d.clock + " FROM " + t("log") + " WHERE id = 1",

		lookLRPs:        d.among("SELECT process_guid, idx, definition_id, presence, "+tag+" FROM "+t("actual_lrps"), lrpTable.key, lrpTable.keyKinds()),
		lookDeployments: d.among("SELECT process_guid, "+tag+" FROM "+t("deployments"), deploymentTable.key, name),
		lookTasks:       d.among("SELECT guid, "+tag+" FROM "+t("tasks"), taskTable.key, name),
		lookLeases:      lookLeases,
		lookFences:      lookLeases.with(d.share),
		updateLease: d.rebind("UPDATE " + t("leases") + " SET owner = ?, epoch = ?, expires_at = ?, value = ? " +
			"WHERE kind = ? AND name = ? AND epoch = ? AND expires_at = ?"),
		insertLease:  insertLease(d, t("leases")),
		lookRequests: d.among("SELECT id, seq FROM "+t("requests"), requestTable.key, name),

		upsertLRPs:           upsert(&lrpTable),
		updateLRPs:           d.insert(t("actual_lrps"), lrpTable.columns(), lrpTable.kinds, d.upsert(lrpTable.key, lrpChanges)),
		deleteLRPs:           d.among("DELETE FROM "+t("actual_lrps"), lrpTable.key, lrpTable.keyKinds()),
		upsertDeployments:    upsert(&deploymentTable),
		deleteDeployments:    d.among("DELETE FROM "+t("deployments"), deploymentTable.key, name),
		insertDefinitions:    insert(&definitionTable),
		deleteDefinitions:    d.among("DELETE FROM "+t("definitions"), definitionTable.key, definitionTable.keyKinds()),
		deleteAllDefinitions: d.among("DELETE FROM "+t("definitions"), deploymentTable.key, name),
		upsertTasks:          upsert(&taskTable),
		deleteTasks:          d.among("DELETE FROM "+t("tasks"), taskTable.key, name),
		upsertDomains:        upsert(&domainTable),
		insertRequests:       insert(&requestTable),
		insertEvents:         insert(&eventTable),

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
func insertLease(d *dialect, table string) string {
	columns := leaseTable.columns()
	values := make([]string, len(columns))
	for i, k := range leaseTable.kinds {
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
