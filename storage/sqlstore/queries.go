package sqlstore

import (
	"strings"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/tables"
)

// queries are the statements of a store, made once.
type queries struct {
	// common are statements that are prepared as soon as one is.
	common []string

	lockLog, clock, log string

	lookLRPs, lookDeployments, lookTasks, lookRequests dialect.Multi
	lookLeases, lookFences                             dialect.Multi

	upsertLRPs, updateLRPs, deleteLRPs   dialect.Multi
	upsertDeployments, deleteDeployments dialect.Multi
	insertDefinitions, deleteDefinitions dialect.Multi
	deleteAllDefinitions                 dialect.Multi
	upsertTasks, deleteTasks             dialect.Multi
	upsertDomains                        dialect.Multi
	insertRequests, insertEvents         dialect.Multi

	updateLease, insertLease                   string
	setLog, insertMarker                       string
	identity, gaps, gapAt, insertGap, trimGaps string
	dropGaps, dropEvents                       string
	widenGap, changeEvents                     string
	raiseFloor                                 string
	measure                                    string
	trimEvents, sweepRequests, sweepMarkers    string
	sweepDomains, raiseEpoch, sweepLeases      string
	findSegment, findMarker, findRequest       string
	rawLRP, rawTask                            string
	asideLRP, asideDeployment, asideDefinition string
	asideTask                                  string
}

// lrpChanges are the columns that can change in a record that stays on its
// cell; the index by cell is not touched.
var lrpChanges = []string{"domain", "state", "tag_epoch", "tag_index", "data", "stopping"}

func (s *Store) newQueries() queries {
	d, t := s.d, s.table
	const tag = "tag_epoch, tag_index"
	name := []dialect.Kind{dialect.Text}
	aside := "INSERT INTO " + t("quarantine") + " (at, kind, guid, idx, definition_id, presence, reason, data) SELECT "
	lookLeases := d.Among("SELECT kind, name, owner, epoch, expires_at, value FROM "+t("leases"), tables.Leases.Key, tables.Leases.KeyKinds())
	insert := func(x *tables.Table) dialect.Multi { return d.Insert(t(x.Name), x.Columns(), x.Kinds, "") }
	upsert := func(x *tables.Table) dialect.Multi {
		return d.Insert(t(x.Name), x.Columns(), x.Kinds, d.Upsert(x.Key, x.Rest))
	}
	q := queries{
		lockLog: "SELECT newest, oldest FROM " + t("log") + " WHERE id = 1" + d.Lock,
		clock:   "SELECT " + d.Clock,
		log:     "SELECT newest, oldest, COALESCE((SELECT MAX(first_seq) FROM " + t("gaps") + "), 0), " + d.Clock + " FROM " + t("log") + " WHERE id = 1",

		lookLRPs:        d.Among("SELECT process_guid, idx, definition_id, presence, "+tag+" FROM "+t("actual_lrps"), tables.LRPs.Key, tables.LRPs.KeyKinds()),
		lookDeployments: d.Among("SELECT process_guid, "+tag+" FROM "+t("deployments"), tables.Deployments.Key, name),
		lookTasks:       d.Among("SELECT guid, "+tag+" FROM "+t("tasks"), tables.Tasks.Key, name),
		lookLeases:      lookLeases,
		lookFences:      lookLeases.With(d.Share),
		updateLease: d.Rebind("UPDATE " + t("leases") + " SET owner = ?, epoch = ?, expires_at = ?, value = ? " +
			"WHERE kind = ? AND name = ? AND epoch = ? AND expires_at = ?"),
		insertLease:  insertLease(d, t("leases")),
		lookRequests: d.Among("SELECT id, seq FROM "+t("requests"), tables.Requests.Key, name),

		upsertLRPs:           upsert(&tables.LRPs),
		updateLRPs:           d.Insert(t("actual_lrps"), tables.LRPs.Columns(), tables.LRPs.Kinds, d.Upsert(tables.LRPs.Key, lrpChanges)),
		deleteLRPs:           d.Among("DELETE FROM "+t("actual_lrps"), tables.LRPs.Key, tables.LRPs.KeyKinds()),
		upsertDeployments:    upsert(&tables.Deployments),
		deleteDeployments:    d.Among("DELETE FROM "+t("deployments"), tables.Deployments.Key, name),
		insertDefinitions:    insert(&tables.Definitions),
		deleteDefinitions:    d.Among("DELETE FROM "+t("definitions"), tables.Definitions.Key, tables.Definitions.KeyKinds()),
		deleteAllDefinitions: d.Among("DELETE FROM "+t("definitions"), tables.Deployments.Key, name),
		upsertTasks:          upsert(&tables.Tasks),
		deleteTasks:          d.Among("DELETE FROM "+t("tasks"), tables.Tasks.Key, name),
		upsertDomains:        upsert(&tables.Domains),
		insertRequests:       insert(&tables.Requests),
		insertEvents:         insert(&tables.Events),

		identity:     strings.ReplaceAll(d.Identity, "{log}", t("log")),
		gaps:         "SELECT after_seq, first_seq FROM " + t("gaps") + " ORDER BY first_seq",
		gapAt:        d.Rebind("SELECT after_seq, first_seq FROM " + t("gaps") + " WHERE first_seq > ? AND after_seq <= ?"),
		insertGap:    d.Rebind("INSERT INTO " + t("gaps") + " (first_seq, after_seq) VALUES (?, ?)"),
		trimGaps:     d.Rebind("DELETE FROM " + t("gaps") + " WHERE first_seq < ?"),
		dropGaps:     d.Rebind("DELETE FROM " + t("gaps") + " WHERE first_seq > ? AND first_seq < ?"),
		dropEvents:   d.Rebind("DELETE FROM " + t("events") + " WHERE seq > ? AND seq < ?"),
		widenGap:     d.Rebind("UPDATE " + t("gaps") + " SET after_seq = ? WHERE first_seq = ?"),
		changeEvents: d.Rebind("UPDATE " + t("events") + " SET data = ? WHERE seq = ?"),
		raiseFloor:   d.Rebind("UPDATE " + t("leases") + " SET epoch = ? WHERE kind = '' AND name = '' AND epoch < ?"),

		setLog:        d.Rebind("UPDATE " + t("log") + " SET newest = ?, oldest = ? WHERE id = 1"),
		insertMarker:  d.Rebind("INSERT INTO " + t("markers") + " (token, at) VALUES (?, ?)"),
		measure:       measureQuery(d, t("events")),
		trimEvents:    d.Rebind("DELETE FROM " + t("events") + " WHERE seq < ?"),
		sweepRequests: d.Rebind("DELETE FROM " + t("requests") + " WHERE at < ?"),
		sweepMarkers:  d.Rebind("DELETE FROM " + t("markers") + " WHERE at < ?"),
		sweepDomains:  d.Rebind("DELETE FROM " + t("domains") + " WHERE expires_at > 0 AND expires_at < ?"),
		// A subquery of its own, as MySQL does not read a table that it changes.
		raiseEpoch: d.Rebind("UPDATE " + t("leases") + " SET epoch = (SELECT newest FROM (SELECT MAX(epoch) AS newest FROM " +
			t("leases") + " WHERE expires_at < ?) AS ended) WHERE kind = '' AND name = ''"),
		sweepLeases: d.Rebind("DELETE FROM " + t("leases") + " WHERE expires_at < ? AND kind <> ''"),

		findSegment: d.Rebind("SELECT COALESCE(MAX(seq), 0) FROM " + t("events") + " WHERE seq > ? AND token = ?"),
		findMarker:  d.Rebind("SELECT COUNT(*) FROM " + t("markers") + " WHERE token = ?"),
		findRequest: d.Rebind("SELECT seq FROM " + t("requests") + " WHERE id = ?"),

		rawLRP: d.Rebind("SELECT " + lrpColumns + " FROM " + t("actual_lrps") +
			" WHERE process_guid = ? AND idx = ? AND definition_id = ? AND presence = ?"),
		rawTask: d.Rebind("SELECT guid, data FROM " + t("tasks") + " WHERE guid = ?"),
		asideLRP: d.Rebind(aside + "?, 'actual_lrp', process_guid, idx, definition_id, presence, ?, data FROM " + t("actual_lrps") +
			" WHERE process_guid = ? AND idx = ? AND definition_id = ? AND presence = ?"),
		asideDeployment: d.Rebind(aside + "?, 'deployment', process_guid, -1, active_definition_id, 0, ?, settings FROM " +
			t("deployments") + " WHERE process_guid = ?"),
		asideDefinition: d.Rebind(aside + "?, 'definition', process_guid, -1, definition_id, 0, ?, data FROM " +
			t("definitions") + " WHERE process_guid = ?"),
		asideTask: d.Rebind(aside + "?, 'task', guid, -1, '', 0, ?, data FROM " + t("tasks") + " WHERE guid = ?"),
	}
	if d.Arrays {
		for _, m := range []dialect.Multi{
			q.lookLRPs, q.lookDeployments, q.lookTasks, q.lookLeases, q.lookFences, q.lookRequests,
			q.upsertLRPs, q.updateLRPs, q.deleteLRPs, q.upsertDeployments, q.insertDefinitions, q.deleteDefinitions,
			q.upsertTasks, q.deleteTasks, q.upsertDomains, q.insertRequests, q.insertEvents,
		} {
			q.common = append(q.common, m.Query(1))
		}
		q.common = append(q.common, q.updateLease, q.insertLease, q.setLog, q.insertMarker, q.trimEvents, q.trimGaps, q.sweepRequests, q.sweepMarkers, q.sweepDomains, q.raiseEpoch, q.sweepLeases)
	}
	return q
}

// insertLease is a statement that adds a lease if there is none and if the row
// of the deleted leases has an epoch. It waits for a transaction that deletes
// leases.
func insertLease(d *dialect.Dialect, table string) string {
	columns := tables.Leases.Columns()
	values := make([]string, len(columns))
	for i, k := range tables.Leases.Kinds {
		if values[i] = "?"; d.Arrays {
			values[i] += "::" + string(k)
		}
	}
	insert, ignore := "INSERT INTO ", " ON CONFLICT DO NOTHING"
	if d.Dir == "mysql" {
		insert, ignore = "INSERT IGNORE INTO ", ""
	}
	return d.Rebind(insert + table + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" FROM " + table + " AS forgotten WHERE forgotten.kind = '' AND forgotten.name = '' AND forgotten.epoch = ?" + d.Share + ignore)
}
