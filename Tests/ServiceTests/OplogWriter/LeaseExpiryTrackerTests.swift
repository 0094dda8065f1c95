import SyncModel
import SyncStore
import Testing

@testable import OplogWriter

@Suite("Expiry of leases") struct LeaseExpiryTrackerTests {
    private let start = ContinuousClock.now

    private func book(_ id: String?, isComplete: Bool = true, _ renewals: Int64...) -> LeaseRecord {
        LeaseRecord(
            id: id, isComplete: isComplete,
            leases: renewals.enumerated().map { index, renewals in
                LeaseRecord.Lease(gatewayID: "g\(index)", epoch: 1, renewals: renewals, controlVersion: 0)
            })
    }

    /// A read of the lease record that begins at this second and takes half a second.
    private func look(_ watch: inout LeaseExpiryTracker, _ book: LeaseRecord, at seconds: Double) -> [LeaseRecord
        .Change]
    {
        watch.changes(in: book, asked: start + .seconds(seconds), answered: start + .seconds(seconds + 0.5))
    }

    @Test("a lease ends after no renewal was seen for its length, by the tracker's own clock")
    func over() {
        var watch = LeaseExpiryTracker()
        #expect(look(&watch, book("b", 4, 7), at: 0).isEmpty)
        #expect(look(&watch, book("b", 4, 8), at: 3).isEmpty)
        // The first observation has the time of the reply, half a second after the request.
        #expect(look(&watch, book("b", 4, 8), at: 6).isEmpty)
        #expect(look(&watch, book("b", 4, 9), at: 6.5) == [.end(book("b", 4).leases[0])])
        // After the end of a lease, the next one is new.
        #expect(look(&watch, book("b", 4, 9), at: 7) == [.end(book("b", 4).leases[0])])
        #expect(look(&watch, book("b"), at: 8).isEmpty)
        #expect(look(&watch, book("b", 4), at: 9).isEmpty)
        #expect(look(&watch, book("b", 4), at: 15).isEmpty)
        #expect(look(&watch, book("b", 4), at: 15.5).count == 1)
    }

    @Test("a lease record that a crash emptied is opened again, and complete after a lease's length")
    func crash() {
        var watch = LeaseExpiryTracker()
        #expect(look(&watch, book("b", 4), at: 0).isEmpty)
        #expect(look(&watch, book(nil, isComplete: false), at: 10) == [.open])
        #expect(look(&watch, book("c", isComplete: false), at: 11).isEmpty)
        #expect(look(&watch, book("c", isComplete: false), at: 17).isEmpty)
        // A second crash: earlier observations of the lease record do not count.
        #expect(look(&watch, book("d", isComplete: false), at: 17.5).isEmpty)
        #expect(look(&watch, book("d", isComplete: false), at: 23.5).isEmpty)
        #expect(look(&watch, book("d", isComplete: false), at: 24) == [.complete("d")])
        #expect(look(&watch, book("d"), at: 25).isEmpty)
    }

    @Test("a new tracker ends no lease and completes no record before a lease's length")
    func begun() {
        var watch = LeaseExpiryTracker()
        #expect(look(&watch, book("b", isComplete: false, 4), at: 1_000).isEmpty)
        #expect(look(&watch, book("b", isComplete: false, 4), at: 1_006).isEmpty)
        #expect(
            look(&watch, book("b", isComplete: false, 4), at: 1_006.5)
                == [.complete("b"), .end(book("b", 4).leases[0])])
    }
}
