package import ArgumentParser
import Foundation

/// `mssctl ratio`: compares two systems in one run (`deploy/bench/README.md`).
package struct RatioCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "ratio",
        abstract: "Compares rate, latency and processor time of two running systems in one run.",
        discussion: """
            deploy/bench/ratio.sh starts the systems and calls this command. Each result is the median of the ratios \
            of neighbouring slices, with an interval.
            """,
        subcommands: [RatioMeasureCommand.self, RatioReportCommand.self])

    package init() {}
}

/// `mssctl ratio measure`.
struct RatioMeasureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "measure", abstract: "Loads two systems in turn, and prints the ratios first / second.")

    @Option(help: "Description of the first system, JSON.", completion: .file(extensions: ["json"]))
    var first: String
    @Option(help: "Description of the second system, JSON.", completion: .file(extensions: ["json"]))
    var second: String
    @Option(help: "Pushes per second; the highest rate of each system when absent.")
    var rate: Int?
    @Option(help: "Without --rate: number of pushes in flight.")
    var window = 1_000
    @Option(help: "Number of pairs of slices.")
    var pairs = 12
    @Option(help: "Keep-alive connections to each API.")
    var connections = 500
    @Option(help: "Write the samples as JSON to this file.", completion: .file())
    var samples: String?

    func validate() throws {
        guard [rate ?? 1, window, pairs, connections].allSatisfy({ $0 > 0 }), pairs <= 255 else {
            throw ValidationError("numbers must be above 0, and --pairs at most 255")
        }
    }

    func run() async throws {
        let session = ComparisonSession(
            sides: try [first, second].map { try ComparedSide.read(file: $0) },
            pace: ComparisonSession.pace(rate: rate, window: window), pairs: pairs, connections: connections)
        let found = try await session.run { number in
            FileHandle.standardError.write(Data("pair \(number) of \(pairs) is measured\n".utf8))
        }
        if let samples { try found.json().write(to: URL(fileURLWithPath: samples)) }
        try RatioReportCommand.show(found)
    }
}

/// `mssctl ratio report`.
struct RatioReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "Prints the report of samples again.")

    @Argument(help: "File with samples.", completion: .file(extensions: ["json"]))
    var samples: String

    func run() async throws {
        guard let data = FileManager.default.contents(atPath: samples) else {
            throw ValidationError("no samples at \(samples)")
        }
        try Self.show(try JSONDecoder().decode(ComparisonSamples.self, from: data))
    }

    /// Prints a report. Without a result, the exit code is 1.
    static func show(_ samples: ComparisonSamples) throws {
        let report = ComparisonReport(samples)
        print(report.text)
        if !report.isUsable { throw ExitCode.failure }
    }
}
