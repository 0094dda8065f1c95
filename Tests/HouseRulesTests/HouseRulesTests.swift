import Testing

@Suite("Rules of the house") struct HouseRulesTests {
    @Test("no file breaks", arguments: HouseRule.all) func holds(rule: HouseRule) throws {
        for file in try SourceFile.all() {
            for violation in rule.violations(file) {
                Issue.record("\(file.path):\(violation.line): \(violation.what)")
            }
        }
    }

    @Test("a file that breaks it is found", arguments: HouseRule.all) func finds(rule: HouseRule) {
        #expect(!rule.violations(rule.sample).isEmpty)
    }

    @Test("the whole project is looked at") func reach() throws {
        let paths = Set(try SourceFile.all().map(\.path))
        for path in [
            "README.md", "Package.swift", "deploy/up", "Shared/SyncStore/Migrations/m0001_oplog.sql",
            "Services/Gateway/SessionStateMachine.swift", "Tests/HouseRulesTests/HouseRule.swift",
        ] { #expect(paths.contains(path), "\(path)") }
    }
}
