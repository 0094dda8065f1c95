import BusMessages
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("The registration of a session")
struct SessionRegistrationTests {
    private static func reply(_ epoch: Int64) -> Mss_Bus_V1_SessionReply { .with { $0.connectionEpoch = epoch } }

    /// A registration under a lease that is in flight.
    private static func sent(in context: SessionContext) -> SessionRegistration {
        var registration = SessionRegistration()
        registration.addBind()
        registration.begin(in: context)
        return registration
    }

    @Test("an accepted reply puts the session on record under the lease of the request") func accepted() {
        var bench = SessionBench()
        var registration = Self.sent(in: bench.context)
        #expect(registration.apply(Self.reply(7), bindNumber: 1, current: 1, in: bench.context) == .accepted)
        #expect(registration.isOnRecord(in: bench.context))
        #expect(registration.open() == true)
        #expect(registration.open() == false)
        #expect(registration.openBind() == true)
        #expect(registration.openBind() == false)
        bench.leaseEpoch = 2
        #expect(!registration.isOnRecord(in: bench.context))
    }

    @Test("a reply of another bind, or from before a change of control data, is outdated") func outdated() {
        let context = SessionBench().context
        var registration = Self.sent(in: context)
        #expect(registration.apply(Self.reply(7), bindNumber: 1, current: 2, in: context) == .outdated)
        registration.begin(in: context)
        registration.contextChanged()
        #expect(registration.apply(Self.reply(7), bindNumber: 2, current: 2, in: context) == .outdated)
        registration.begin(in: context)
        #expect(registration.apply(Self.reply(7), bindNumber: 2, current: 2, in: context) == .accepted)
    }

    @Test("a session opens only under the lease of its registration; otherwise it registers again") func otherLease() {
        var bench = SessionBench()
        var registration = Self.sent(in: bench.context)
        bench.leaseEpoch = 2
        #expect(registration.apply(Self.reply(7), bindNumber: 1, current: 1, in: bench.context) == .failed)
        #expect(registration.needsRetry && !registration.isInFlight)
        registration.begin(in: bench.context)
        #expect(!registration.needsRetry)
        #expect(registration.apply(Self.reply(8), bindNumber: 1, current: 1, in: bench.context) == .accepted)
    }

    @Test("a session that knows of a newer connection does not open") func superseded() {
        let context = SessionBench().context
        var registration = Self.sent(in: context)
        #expect(registration.supersede(by: 8) == false)
        #expect(registration.apply(Self.reply(7), bindNumber: 1, current: 1, in: context) == .superseded)
        registration.begin(in: context)
        #expect(registration.apply(Self.reply(9), bindNumber: 1, current: 1, in: context) == .accepted)
        _ = registration.open()
        #expect(registration.supersede(by: 9) == false)
        #expect(registration.supersede(by: 10) == true)
    }

    @Test("a registration that is needed during another one is sent after its reply") func again() {
        let context = SessionBench().context
        var registration = Self.sent(in: context)
        #expect(registration.wantAgain() == false)
        #expect(registration.apply(Self.reply(7), bindNumber: 1, current: 1, in: context) == .accepted)
        #expect(registration.isWantedAgain)
        #expect(registration.wantAgain() == true)
        #expect(!registration.isWantedAgain)
    }
}
