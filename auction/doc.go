// Package auction chooses a cell for every piece of work of a batch (000
// §Distributing ActualLRPs, §Distributing Tasks).
//
// [Place] is a pure function: the states of all cells ([CellState]), a batch of
// work ([Item]) and a [Policy] go in, and a [Result] comes out that says for
// each item either the cell it goes to or why no cell can take it. The same
// input gives the same result, in any order of cells and items.
//
// The order of work is fixed: the instances at index 0, then tasks, then the
// instances at index 1, at index 2 and so on; within each of these groups the
// larger memory first (000 §Auction Work Prioritization), then the larger amount of
// further resources. Ties go by GUID, then by index, definition and domain. Items
// with equal keys are one item.
//
// A cell can take an item if it offers the root file system, the volume drivers
// and the placement tags that the item asks for, and has room for it. Among
// these cells an instance goes to the one that [Score] ranks first: fewest
// instances of its process in the zone, then fewest on the cell, then the most
// even use of memory, disk, containers and further resources. A task goes to the
// cell with the fewest tasks and then the most even use, in any zone. Equal cells are
// taken in the order of their ids. If even use leaves items without room although
// the fleet has enough of it in all, the batch is packed: see [Place].
//
// Further resources are amounts by name, such as 2 of "gpu", that cells have and
// items take (Extra). An item that names nothing but these, and no root file
// system, may be anything that runs on a machine: see the example of Place.
//
// Nothing that was decided has to be guessed from a log: a [Placement] holds
// the score of the winner and of the runner-up, a [Refusal] counts the cells by
// the reason for which they were passed over and names the nearest miss. All of
// them print as a line that an operator understands.
//
// A [Runner] is the shell around it, the auctioneer: it collects requests into
// batches, asks the cells for their states, places, hands the work over and
// reports what failed. It leaves out cells that answer too late or take nothing.
// It speaks to cells through a [CellClient].
//
// # How it is fast
//
// What an item adds to a cell's score depends on the item and on the cell's
// totals only, so cells with the same totals keep their order for every item.
// The cells of a zone that are open to the same work of the batch form a class,
// and a tournament tree over each class finds the best cell with room in about
// log(cells) steps. Cells of different sizes lie in one tree, sorted so that
// neighbours are alike, and bounds on their sizes tell which of them to look at. A
// tree knows the most that is left of each further resource that the batch asks for.
//
// The cells of a process are a list while they are few, and then sets of bits by
// number of instances. Once a process is on most cells, a search looks at the others
// only, and leaves out those of which earlier searches have found that they cannot
// be good enough: scores only rise while a batch is placed. Refusals are explained
// together at the end of the batch.
//
// Scores are integers: no rounding error ever decides, and none depends on the
// order of additions. A policy with filters or a scorer of its own costs what
// looking at every cell costs for every item, because nothing is known about
// them: [Policy] says what they may see.
//
// # Concurrent use
//
// The types of this package are values, unless their own comments say otherwise:
// any number of goroutines may read one at the same time, and a caller that
// changes one keeps the others away meanwhile. [Place] keeps no state and may be
// called at the same time. A [Runner] may be shared by goroutines. What it calls
// must bear calls at the same time: [CellClient], [InventoryClient], [Directory],
// [Reporter], [Metrics], and every [Filter] and [Scorer] of its policy.
package auction
