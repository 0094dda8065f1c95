import DeliveryHistory
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import OplogWriter

@Suite("A page of history, chosen row by row")
struct HistoryScanTests {
    private static let phone = DeviceTraits(operatingSystem: .iOS, appVersion: "1.0", slot: DeviceSlot(number: 0))

    private static func row(
        _ id: Int, bytes: Int = 1, isOffered: Bool = true, targeting: Targeting = .everyone
    ) -> HistoryStore.Candidate {
        HistoryStore.Candidate(
            id: OplogID(Int64(id)), targeting: targeting, payloadBytes: bytes, isOffered: isOffered)
    }

    /// Runs a scan over all rows.
    private static func scan(_ rows: [HistoryStore.Candidate], count: Int) -> (scan: HistoryScan, looked: Int) {
        var (scan, looked) = (HistoryScan(count: count, device: phone), 0)
        while scan.nextRows > 0 {
            let first = scan.position.map { position in rows.firstIndex { $0.id == position }! + 1 } ?? 0
            let turn = Array(rows[first...].prefix(scan.nextRows))
            looked += turn.count
            scan.examine(turn)
        }
        return (scan, looked)
    }

    @Test("a page with its whole range ends there; with one more row it ends after its last row")
    func ends() {
        let rows = (1...10).map { Self.row($0) }
        for (count, chosen, isCutShort) in [(20, 10, false), (10, 10, false), (9, 9, true), (1, 1, true)] {
            let scan = Self.scan(rows, count: count).scan
            #expect(scan.chosen.map(\.value) == (1...chosen).map(Int64.init) && scan.isCutShort == isCutShort)
            #expect(scan.position == OplogID(Int64(chosen)))
        }
        let none = Self.scan([], count: 5).scan
        #expect(none.chosen.isEmpty && !none.isCutShort && none.position == nil)
    }

    @Test("rows that are not for the device are skipped, also many of them")
    func passesOver() {
        let strange = Targeting(operatingSystem: .android)
        let rows = (1...500).map { id in
            Self.row(id, isOffered: id % 3 > 0, targeting: id % 100 == 1 ? .everyone : strange)
        }
        let wanted = [1, 101, 301, 401].map { Int64($0) }
        #expect(Self.scan(rows, count: 10).scan.chosen.map(\.value) == wanted)
        let first = Self.scan(rows, count: 2).scan
        #expect(first.chosen.map(\.value) == [1, 101] && first.isCutShort)
        let version = Self.row(1, targeting: Targeting(minimumVersion: "1.1"))
        #expect(Self.scan([version], count: 1).scan.chosen.isEmpty)
    }

    @Test("a page ends after 1,000 examined rows, also empty, and names its end")
    func bound() {
        let rows = (1...1_001).map { Self.row($0, isOffered: false) }
        let (cut, looked) = Self.scan(rows, count: 1)
        #expect(cut.chosen.isEmpty && cut.isCutShort && cut.position == OplogID(1_000) && looked == 1_001)
        let whole = Self.scan(Array(rows.dropLast()), count: 1).scan
        #expect(!whole.isCutShort, "there is nothing beyond")
    }

    @Test("at 64 KiB of payload a page ends; a single oplog is never too large")
    func bytes() {
        let rows = (1...10).map { Self.row($0, bytes: 12_288) }
        let scan = Self.scan(rows, count: 10).scan
        #expect(scan.chosen.count == 5 && scan.isCutShort && scan.position == OplogID(5))
        #expect(Self.scan([Self.row(1, bytes: 100_000)], count: 10).scan.chosen.count == 1)
        // Rows that are left out have no size.
        let light = (1...10).map { Self.row($0, bytes: 60_000, isOffered: $0 == 10) }
        #expect(Self.scan(light, count: 10).scan.chosen.map(\.value) == [10])
    }

    @Test("consecutive pages contain the whole range, with any sizes", arguments: 0..<100)
    func pages(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let rows = (1...Int.random(in: 1...3_000, using: &generator)).map { id in
            Self.row(
                id, bytes: Int.random(in: 0...12_288, using: &generator),
                isOffered: Int.random(in: 0...9, using: &generator) < 3)
        }
        var (left, shown, mayGoOn) = (rows[...], [OplogID](), true)
        while mayGoOn {
            let scan = Self.scan(Array(left), count: Int.random(in: 1...100, using: &generator)).scan
            shown += scan.chosen
            mayGoOn = scan.isCutShort
            if let position = scan.position { left = left.drop { $0.id <= position } }
        }
        #expect(shown == rows.filter(\.isOffered).map(\.id), "seed \(seed)")
    }
}
