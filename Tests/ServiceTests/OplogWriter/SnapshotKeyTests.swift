import SyncModel
import Testing

@testable import OplogWriter
@testable import SyncStore

@Suite("The keys that a snapshot carries") struct SnapshotKeyTests {
    private static let all = AppKey.Purpose.allCases.flatMap { purpose in
        ["a_1", "b_2"].map { instance in
            KeyStore.Held(
                instanceID: InstanceID(instance),
                key: AppKey(
                    id: "k-\(purpose.word)", purpose: purpose, sealedSecret: [7], limits: KeyLimits(),
                    createdAt: WallTime(milliseconds: 0)))
        }
    }

    @Test("SEC16: a request for the keys of a purpose gets no others", arguments: AppKey.Purpose.allCases)
    func ofOnePurpose(purpose: AppKey.Purpose) {
        let keys = SnapshotHandler.keys(Self.all, for: purpose)
        let purposes = keys.map(\.key.purpose)
        #expect(purposes == [purpose, purpose])
        #expect(keys.map(\.key.sealedSecret) == [[7], [7]])
    }

    @Test("SEC16: a list of all keys has no secret, sealed or not") func list() {
        let keys = SnapshotHandler.keys(Self.all, for: nil)
        #expect(keys.map(\.key.id) == Self.all.map(\.key.id))
        #expect(keys.map(\.key.sealedSecret) == Self.all.map { _ in [] })
    }
}
