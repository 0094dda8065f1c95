import Foundation
import SyncModel
import SyncStore
import Testing

@testable import Console
@testable import ServiceKit

@Suite("Console: charts and figures") struct ConsoleChartTests {
    private func chart(_ values: [Double?], length: Int64 = 3_600_000) -> LineChart {
        let points = values.enumerated().map { (at: Int64($0.offset) * 60_000, value: $0.element) }
        return LineChart(
            id: "c", title: "T<", lines: [LineChart.Line(name: "N", points: points)], from: 0, to: length)
    }

    @Test("a chart's axis ends at a round number; times have few letters") func numbers() {
        #expect([0, 1, 1.5, 7, 11, 4_999, 5_001].map(LineChart.niceCeiling) == [1, 1, 2, 10, 20, 5_000, 10_000])
        #expect([0, 950, 1_200, 3_000_000].map(LineChart.short) == ["0", "950", "1.2k", "3M"])
        let times: [Double?] = [nil, 12.4, 3_440, 240_000, 7_200_000]
        #expect(times.map { OverviewFigures.text(milliseconds: $0) } == ["–", "12 ms", "3.4 s", "4 min", "2.0 h"])
    }

    @Test("C1: a missing figure is a gap in the line, and a point between gaps is a dot") func gaps() {
        let svg = chart([1, 2, nil, 3, nil, nil, 4, 5]).svg(.of(.english))
        #expect(svg.matches(of: /class="line-1"/).count == 2 && svg.matches(of: /class="dot-1"/).count == 1)
        #expect(!chart([nil, nil]).svg(.of(.english)).contains("line-1"))
        #expect(LineChart.unbroken([(0, nil), (1, 2), (2, nil), (3, nil), (4, 0)]).map(\.count) == [1, 1])
    }

    @Test("C1: a chart has a title, its newest and highest values in words, and labels below") func words() {
        let svg = chart([1, 7, nil, 3]).svg(.of(.english))
        #expect(
            svg.contains("aria-labelledby=\"c-title c-text\"") && svg.contains("<title id=\"c-title\">T&lt;</title>"))
        #expect(svg.contains("<desc id=\"c-text\">N: newest 3, highest 7.</desc>"))
        #expect(chart([nil]).summary(.of(.chinese)) == "N: 暂无数据.")
        #expect(svg.matches(of: /data-axis="\d+"/).count == 5 && svg.contains(">00:30</text>"))
        #expect(chart([1], length: 7 * 86_400_000).svg(.of(.english)).contains("data-days"))
    }

    @Test("C1: the same as a table of 12 rows at the most, each with the highest value of its time") func table() {
        let rows = chart((0..<60).map { $0 == 7 ? nil : Double($0) }).rows
        #expect(rows.count == 12 && rows.map(\.values).prefix(3) == [["4"], ["9"], ["14"]])
        #expect(rows[1].at == 300_000)
        #expect(chart([nil, 2]).rows.map(\.values) == [["–"], ["2"]])
    }

    @Test("C1: earlier numbers of missing arrivals are computed from the current number") func backlogs() {
        #expect(OverviewFigures.backlogs(now: 5, changes: [3, -1, 0, 2]) == [4, 3, 3, 5])
        #expect(OverviewFigures.backlogs(now: 0, changes: [-2, 4, 0]) == [0, 0, 0], "never less than none")
        #expect(OverviewFigures.backlogs(now: 3, changes: []).isEmpty)
    }

    @Test("C1: a step that the figures do not reach has none; one in which nothing happened has zero") func steps() {
        func at(_ minute: Int64) -> WallTime { WallTime(milliseconds: minute * 60_000) }
        let steps = OverviewRoutes.steps(
            [FigureStore.Step(begin: at(1), pushes: 4, arrivals: ArrivalTimes())],
            [FigureStore.Connected(begin: at(2), devices: 9)], range: (at(0), at(4), .seconds(60)),
            foldedUntil: at(3), backlog: 6)
        #expect(steps.map(\.pushes) == [0, 4, 0, nil] && steps.map(\.arrivals) == [0, 0, 0, nil])
        #expect(steps.map(\.connected) == [nil, nil, 9, nil] && steps.map(\.backlog) == [2, 6, 6, nil])
    }

    @Test("C1: connected devices are counted by each gateway's last report; without one they are unknown")
    func connected() {
        func report(_ service: String, _ devices: [InstanceID: Int]) -> ProcessReport {
            ProcessReport(
                service: service, processID: "p", version: "1", startedAt: at, isReady: true, conditions: [:],
                figures: [:], devices: devices)
        }
        let (here, there) = (InstanceID("here"), InstanceID("there"))
        let at = WallTime(milliseconds: 0)
        let gateways = [report("mss-gateway", [here: 2, there: 5]), report("mss-gateway", [here: 3])]
        #expect(OverviewRoutes.connected(at: here, gateways) == 5)
        #expect(OverviewRoutes.connected(at: InstanceID("none"), gateways) == 0)
        #expect(OverviewRoutes.connected(at: here, [report("mss-ingest", [:])]) == nil)
    }
}
