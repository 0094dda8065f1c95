import SyncModel
import SyncStore
import Testing

@testable import OplogWriter

@Suite("The watch over leases") struct LeaseWatchTests {
    private let start = ContinuousClock.now

    private func book(_ id: String?, isComplete: Bool = true, _ renewals: Int64...) -> LeaseBook {
        LeaseBook(
            id: id, isComplete: isComplete,
            leases: renewals.enumerated().map { index, renewals in
                LeaseBook.Lease(gatewayID: "g\(index)", epoch: 1, renewals: renewals, controlVersion: 0)
            })
    }

    /// A look that begins at this second and takes half of one.
    private func look(_ watch: inout LeaseWatch, _ book: LeaseBook, at seconds: Double) -> [LeaseBook.Change] {
        watch.changes(in: book, asked: start + .seconds(seconds), answered: start + .seconds(seconds + 0.5))
    }

    @Test("a lease is over once it was seen unrenewed for its whole length, by the watch's own clock")
    func over() {
        var watch = LeaseWatch()
        #expect(look(&watch, book("b", 4, 7), at: 0).isEmpty)
        #expect(look(&watch, book("b", 4, 8), at: 3).isEmpty)
        // Seen first when the answer came, half a second after it was asked for.
        #expect(look(&watch, book("b", 4, 8), at: 6).isEmpty)
        #expect(look(&watch, book("b", 4, 9), at: 6.5) == [.end(book("b", 4).leases[0])])
        // Whoever ended it, what comes next is new.
        #expect(look(&watch, book("b", 4, 9), at: 7) == [.end(book("b", 4).leases[0])])
        #expect(look(&watch, book("b"), at: 8).isEmpty)
        #expect(look(&watch, book("b", 4), at: 9).isEmpty)
        #expect(look(&watch, book("b", 4), at: 15).isEmpty)
        #expect(look(&watch, book("b", 4), at: 15.5).count == 1)
    }

    @Test("a book that a crash took away is opened anew, and complete once it was seen for a lease's length")
    func crash() {
        var watch = LeaseWatch()
        #expect(look(&watch, book("b", 4), at: 0).isEmpty)
        #expect(look(&watch, book(nil, isComplete: false), at: 10) == [.open])
        #expect(look(&watch, book("c", isComplete: false), at: 11).isEmpty)
        #expect(look(&watch, book("c", isComplete: false), at: 17).isEmpty)
        // A second crash: what was seen of the book before counts for nothing.
        #expect(look(&watch, book("d", isComplete: false), at: 17.5).isEmpty)
        #expect(look(&watch, book("d", isComplete: false), at: 23.5).isEmpty)
        #expect(look(&watch, book("d", isComplete: false), at: 24) == [.complete("d")])
        #expect(look(&watch, book("d"), at: 25).isEmpty)
    }

    @Test("a watch that has just begun calls nothing over or complete, however long it lasts already")
    func begun() {
        var watch = LeaseWatch()
        #expect(look(&watch, book("b", isComplete: false, 4), at: 1_000).isEmpty)
        #expect(look(&watch, book("b", isComplete: false, 4), at: 1_006).isEmpty)
        #expect(
            look(&watch, book("b", isComplete: false, 4), at: 1_006.5)
                == [.complete("b"), .end(book("b", 4).leases[0])])
    }
}
