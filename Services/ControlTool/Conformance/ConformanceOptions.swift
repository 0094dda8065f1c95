import ArgumentParser

/// What both kits take.
struct ConformanceOptions: ParsableArguments {
    @Option(help: "Only cases whose name contains one of these texts, comma separated.")
    var filter: String?
    @Flag(help: "Print one JSON object instead of a table.")
    var json = false
    @Flag(help: "List the cases with the rules they hold, and run none.")
    var list = false
    @Flag(help: "Cases that the implementation does not support are no failure.")
    var allowUnsupported = false
    @Option(help: "Cases that run at the same time.")
    var atOnce: Int?

    func validate() throws {
        if let atOnce, atOnce < 1 { throw ValidationError("--at-once takes 1 or more.") }
    }

    /// The cases that were asked for.
    func selected<Subject>(of cases: [ConformanceCase<Subject>]) throws -> [ConformanceCase<Subject>] {
        guard let parts = filter?.split(separator: ",").map(String.init) else { return cases }
        let found = cases.filter { item in parts.contains { item.name.contains($0) } }
        if found.isEmpty { throw ValidationError("no case matches --filter; --list shows them all") }
        return found
    }

    /// Prints the names and rules.
    func show<Subject>(_ cases: [ConformanceCase<Subject>]) {
        for item in cases { print("\(item.name)  [\(item.rule)]") }
    }

    /// Prints what came out; fails unless all is well.
    func finish(_ results: [ConformanceResult]) throws {
        let report = ConformanceReport(results: results, allowsUnsupported: allowUnsupported)
        print(json ? try report.json() : report.table)
        if !report.isPassed { throw ExitCode.failure }
    }
}
