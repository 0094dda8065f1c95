import ArgumentParser

/// Options of both conformance suites.
struct ConformanceOptions: ParsableArguments {
    @Option(help: "Run only cases with one of these texts in the name, comma separated.")
    var filter: String?
    @Flag(help: "Print one JSON object instead of a table.")
    var json = false
    @Flag(help: "List the cases and their rules without running them.")
    var list = false
    @Flag(help: "Do not count unsupported cases as failures.")
    var allowUnsupported = false
    @Option(help: "Number of cases that run at the same time.")
    var atOnce: Int?

    func validate() throws {
        if let atOnce, atOnce < 1 { throw ValidationError("--at-once takes 1 or more.") }
    }

    /// The cases that match the filter.
    func selected<Subject>(of cases: [ConformanceCase<Subject>]) throws -> [ConformanceCase<Subject>] {
        guard let parts = filter?.split(separator: ",").map(String.init) else { return cases }
        let found = cases.filter { item in parts.contains { item.name.contains($0) } }
        if found.isEmpty { throw ValidationError("no case matches --filter; --list shows them all") }
        return found
    }

    /// Prints names and rules.
    func show<Subject>(_ cases: [ConformanceCase<Subject>]) {
        for item in cases { print("\(item.name)  [\(item.rule)]") }
    }

    /// Prints the results. Throws an exit code unless every case passed.
    func finish(_ results: [ConformanceResult]) throws {
        let report = ConformanceReport(results: results, allowsUnsupported: allowUnsupported)
        print(json ? try report.json() : report.table)
        if !report.isPassed { throw ExitCode.failure }
    }
}
