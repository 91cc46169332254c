// Package auction chooses a cell for every piece of work of a batch (000
// §Distributing ActualLRPs, §Distributing Tasks).
//
// [Place] is a pure function. The states of all cells ([CellState]), a batch of
// work ([Item]) and a [Policy] go in. A [Result] comes out; it says for each
// item either the cell it goes to or why no cell can take it. The same input
// gives the same result, in any order of cells and items.
//
// The order of work is fixed: the instances at index 0, then tasks, then the
// instances at index 1, at index 2 and so on. Within each of these groups, the
// larger memory comes first (000 §Auction Work Prioritization), then the larger
// amount of further resources. Ties go by GUID, then by index, definition and
// domain. Items with equal keys are one item.
//
// This order holds as long as the fleet takes the whole batch. If not, the batch
// is placed anew, and the domains take turns within each group: first comes one
// item of each domain, then a second one of each, and so on. A domain's own items
// keep their order. In each turn the domains with the least work in the group come
// first, and among those with equally much the order above holds. So a domain
// that floods a full fleet cannot take every place that becomes free. The new
// placement counts only if it places an item that the first one refused. So an
// item that is too large for every cell alone changes nothing for the others.
// Items that are invalid or have no compatible cell do not lead to turns.
//
// A cell can take an item if it offers the root file system, the volume drivers
// and the placement tags that the item asks for, and has room for it. Among
// these cells an instance goes to the one that [Score] ranks first: fewest
// instances of its process in the zone, then fewest on the cell, then the most
// even use of memory, disk, containers and further resources. A task goes to
// the cell with the fewest tasks and then the most even use, in any zone. The
// ids of cells break ties. If even use leaves items without room although the
// fleet has enough in all, the batch is packed: see [Place].
//
// Further resources are amounts by name, for example 2 of "gpu", that cells
// have and items take (Extra). An item needs no root file system, so Place can
// also choose machines for work that is not a container: see its example.
//
// The result explains every decision. A [Placement] holds the score of the winner
// and of the runner-up. A [Refusal] counts the cells that were passed over, by
// reason, and names the nearest miss. Each prints as a line that an operator
// understands.
//
// A [Runner] is the shell around Place, the auctioneer. It collects requests
// into batches, asks the cells for their states, places, hands the work over
// and reports failures. It leaves out cells that answer too late or take
// nothing. It calls cells through a [CellClient].
//
// Refused work waits for longer after each attempt. Some of the work that was
// refused for lack of room also takes part in rounds before it is due, by turns of
// its domains. This neither counts as an attempt nor is reported.
//
// Place compares scores as integers. A rounding error never makes a difference
// between two cells, nor does the order in which work came to a cell. Place finds
// the best cell without looking at all of them; docs/performance.md explains how,
// and has figures. With filters or a scorer of your own it looks at every cell for
// every item, because it cannot know their rules; [Policy] says what they may see.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say
// otherwise: any number of goroutines may read one at the same time, but nobody
// else may use it while it is being changed. [Place] keeps no state and may be
// called concurrently. Goroutines may share a [Runner]. It makes concurrent
// calls of [CellClient], [Directory], [Reporter] and [Metrics], and of every
// [Filter] and [Scorer] of its policy.
package auction
