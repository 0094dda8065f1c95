import Testing

@Suite("House rules") struct HouseRulesTests {
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

    @Test("each replaced word is found in texts, at its line, but not in code", arguments: Glossary.terms.keys.sorted())
    func replaced(word: String) {
        let texts = [
            "A.md": "A device\n\(word)", "A.swift": "\n/// A \(word.uppercased())'s end.", "A.proto": "\n// \(word)",
            "ATests.swift": "@Test(\n    \"\(word)\")", "A.sql": "\nCOMMIT; -- \(word)s",
            "A.py": "\n\"\"\"\(word)\"\"\"", "deploy/up": "\n    # \(word.replacing(" ", with: "\n    # "))",
        ]
        for (path, text) in texts {
            let found = HouseRule.replacedWords.violations(SourceFile(path: path, text: text))
            #expect(found.map(\.line) == [2] && found.allSatisfy { $0.what.hasPrefix("\(word): ") }, "\(path)")
        }
        let code = [
            "A.md": "A `\(word)`\n```\n\(word)\n```", "A.sql": "SELECT \(word)", "A.py": "print(\(word))",
            "A.swift": "let \(word) = 1\n// `\(word)`, a\(word)", "deploy/up": "echo \(word)",
        ]
        for (path, text) in code {
            #expect(HouseRule.replacedWords.violations(SourceFile(path: path, text: text)).isEmpty, "\(path)")
        }
        let parameter = SourceFile(path: "A.swift", text: "///   - \(word.filter { $0 != " " }): a value.")
        #expect(HouseRule.replacedWords.violations(parameter).isEmpty)
    }

    @Test("every test in the acceptance table exists, and every row has a test on the running system")
    func acceptance() throws {
        let files = try SourceFile.all()
        let sources = files.filter(\.isSwift).map { ($0.path, $0.text) }
        let table = try #require(files.first { $0.path == "Tests/Acceptance.md" })
        let rows = table.lines.filter { $0.contains(/^\| [DHK]\d/) }
        for row in rows {
            let cells = row.split(separator: "|", omittingEmptySubsequences: false)
            for (cell, folder) in [(cells[2], "Tests/EndToEndTests/"), (cells[3], "Tests/")] {
                let names = cell.matches(of: /`([^`]+)`/).map { String($0.output.1) }
                #expect(folder == "Tests/" || !names.isEmpty, "\(cells[1]) has no test on the running system")
                for name in names {
                    let found = sources.contains { $0.hasPrefix(folder) && $1.contains("\"\(name)\"") }
                    #expect(found, "\(cells[1]): there is no test \(name) in \(folder)")
                }
            }
        }
        let named = rows.joined(separator: "\n")
        for row in (1...18).map({ "D\($0)" }) + (1...8).map({ "H\($0)" }) {
            let forms = ["| \(row) ", "| \(row),", ", \(row) ", ", \(row),"]
            #expect(forms.contains { named.contains($0) }, "\(row) is missing")
        }
    }

    @Test("SEC16: only the writer's container has the master keys; each other tier has its purpose's ring")
    func masterKeys() throws {
        let file = try #require(try SourceFile.all().first { $0.path == "docker-compose.yml" })
        // The key is the service. Lines before the services apply to all services.
        var (secrets, service): ([String: Set<String>], String) = ([:], "")
        for line in file.lines.prefix(while: { $0 != "secrets:" }) {
            if let name = line.wholeMatch(of: #/  ([a-z]+):/#)?.output.1 { service = String(name) }
            for found in line.matches(of: /(?i)(master|sealing)_keys_file|master_keys|sealing_[a-z]+/) {
                secrets[service, default: []].insert(found.output.0.lowercased())
            }
        }
        let expected: [String: Set<String>] = [
            "writer": ["master_keys_file", "master_keys"], "ingest": ["sealing_keys_file", "sealing_backend"],
            "gateway": ["sealing_keys_file", "sealing_device"], "validator": ["sealing_keys_file", "sealing_callout"],
            "relay": ["sealing_keys_file", "sealing_callout"],
            // The console has a key of its own, which decrypts no tenant's secret.
            "console": ["sealing_key"],
        ]
        #expect(secrets == expected)
    }

    @Test("every alert has a test and names its section of the runbook, and the runbook has no other section")
    func runbook() throws {
        let files = try SourceFile.all()
        let rules = try #require(files.first { $0.path == "deploy/observability/rules.yml" })
        let alerts = rules.lines.compactMap { $0.wholeMatch(of: /\s+- alert: (\w+)/)?.output.1 }
        let named = rules.lines.compactMap { line in
            line.wholeMatch(of: /\s+runbook: "deploy\/manual\/Alerts\.md#(\w+)"/)?.output.1
        }
        #expect(alerts.count > 10 && named.map { String($0) } == alerts.map { $0.lowercased() })
        let tests = try #require(files.first { $0.path == "deploy/observability/rules_test.yml" }).lines
        for alert in alerts {
            let cases = tests.indices.filter { tests[$0].hasSuffix("alertname: \(alert)") }
            let fires = cases.filter { tests[min($0 + 1, tests.count - 1)].hasSuffix("exp_alerts:") }
            #expect(!fires.isEmpty && fires.count < cases.count, "\(alert) has no test of when it fires and when not")
        }
        for path in ["deploy/manual/Alerts.md", "deploy/manual/Alerts.zh.md"] {
            let page = try #require(files.first { $0.path == path })
            let sections = page.lines.compactMap { $0.wholeMatch(of: /## (.+)/)?.output.1 }
            #expect(sections == alerts, "\(path) has a section for each alert, in the order of the rules")
        }
    }

    @Test("the rules read every file of the project") func reach() throws {
        let paths = Set(try SourceFile.all().map(\.path))
        for path in [
            "README.md", "Package.swift", "deploy/up", "Shared/Server/SyncStore/Functions/oplogs.sql",
            "Services/Gateway/Session/SessionStateMachine.swift", "Tests/HouseRulesTests/HouseRule.swift",
        ] { #expect(paths.contains(path), "\(path)") }
    }
}
