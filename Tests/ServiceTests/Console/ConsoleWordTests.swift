import Foundation
import Mustache
import SyncModel
import Testing

@testable import Console

@Suite("Console: words and templates") struct ConsoleWordTests {
    @Test("C1: every text exists in English and in Chinese") func languages() {
        #expect(PageTexts.file.count > 300)
        for (key, texts) in PageTexts.file {
            for language in Language.allCases {
                #expect(texts[language.rawValue]?.isEmpty == false, "\(key) in \(language)")
            }
            let holders = texts.values.map { $0.count { $0 == "%" } }
            #expect(Set(holders).count == 1, "\(key): where the detail goes")
        }
    }

    @Test("every template parses, and every text that it uses exists") func templates() throws {
        for (name, bytes) in Templates.texts {
            #expect(Templates.library.getTemplate(named: name) != nil, "\(name)")
            let text = String(decoding: bytes, as: UTF8.self)
            for match in text.matches(of: #/\{\{[#^]?t\.([A-Za-z0-9]+)\}\}/#) {
                #expect(PageTexts.file[String(match.1)] != nil, "\(name) uses \(match.1)")
            }
            for match in text.matches(of: #/\{\{[#^]?sets\.([A-Za-z0-9]+)\.([A-Za-z0-9-]+)\}\}/#) {
                #expect(PageTexts.file["\(match.1).\(match.2)"] != nil, "\(name) uses \(match.1).\(match.2)")
            }
            for match in text.matches(of: #/\{\{>([a-z-]+)\}\}/#) {
                #expect(Templates.texts[String(match.1)] != nil, "\(name) includes \(match.1)")
            }
        }
    }

    @Test("SEC13: templates escape all values, except the charts, which escape their own")
    func escaping() throws {
        for (name, bytes) in Templates.texts {
            let text = String(decoding: bytes, as: UTF8.self)
            let raw = text.matches(of: #/\{\{[{&] ?([A-Za-z.]+)/#).map { String($0.1) }
            #expect(raw.allSatisfy { $0 == "svg" }, "\(name): \(raw)")
            // The policy allows style and script only from their files.
            #expect(!text.contains("style=") && !text.contains("<script>") && !text.contains(" on"), "\(name)")
        }
        for special in ["<", ">", "&", "\"", "'"] {
            for text in ["\u{600}\(special)", "\(special)\u{301}", "\u{200d}\(special)\u{fe0f}", "a\(special)b"] {
                let shown = ProblemPage(status: 404, detail: text, requestID: "r")
                let html = PageRenderer.part("problem", shown, PageTexts.of(.english))
                let inside = html.unicodeScalars.split(separator: "<").map { String($0) }
                let line = inside.first { $0.contains("role=\"alert\"") } ?? ""
                #expect(
                    !line.isEmpty
                        && !line.dropFirst(30).unicodeScalars.contains { "<>\"'".unicodeScalars.contains($0) },
                    "\(text.unicodeScalars.map { $0.value })")
            }
        }
        let evil = "<script>\"'&</script>"
        let line = LineChart.Line(name: evil, points: [])
        let svg = LineChart(id: "c", title: evil, lines: [line], from: 0, to: 1).svg(.of(.english))
        #expect(!svg.contains("<script") && svg.contains("&lt;script&gt;&quot;"))
    }

    @Test("every action, state, result and role has a text") func closedSets() {
        for action in OperationAction.allCases { #expect(PageTexts.file["action.\(action.word)"] != nil, "\(action)") }
        for state in DeliveryState.allCases { #expect(PageTexts.file["state.\(state.code)"] != nil, "\(state)") }
        for code in ResultCode.allCases { #expect(PageTexts.file["result.\(code.rawValue)"] != nil, "\(code)") }
        for role in ConsoleRole.allCases { #expect(PageTexts.file["role.\(role.word)"] != nil, "\(role)") }
        for purpose in AppKey.Purpose.allCases {
            #expect(PageTexts.file["purpose.\(purpose.word)"] != nil, "\(purpose)")
        }
        for state in DiagnosisState.allCases {
            #expect(PageTexts.file["diagnosisState.\(state.word)"] != nil, "\(state)")
        }
        for word in ["too-large", "nothing-there", "unreadable", "damaged"] {
            #expect(PageTexts.file["diagnosisRefusal.\(word)"] != nil, "\(word)")
        }
        for word in DiagnosisRequest.networks { #expect(PageTexts.file["network.\(word)"] != nil, "\(word)") }
        for tab in Tab.allCases { #expect(PageTexts.file[tab.word] != nil, "\(tab)") }
        for state in DeliveryState.allCases {
            #expect(PageTexts.of(.english).text("state.\(state.code)").contains(" "), "\(state) is a sentence")
        }
    }

    @Test("the texts of a closed set exist once, and templates use the set") func setsOnce() {
        for key in PageTexts.file.keys {
            let parts = key.split(separator: ".", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { continue }
            let joined = parts[0] + parts[1].prefix(1).uppercased() + parts[1].dropFirst()
            #expect(PageTexts.file[joined] == nil, "\(key) and \(joined)")
            if parts[0] == "member" || parts[0] == "title" || parts[0] == "tab" {
                #expect(PageTexts.file[parts[1]] != PageTexts.file[key], "\(key) and \(parts[1])")
            }
        }
        #expect(PageTexts.of(.chinese).sets["role"]?["viewer"] == "查看者")
    }

    @Test("the browser's language is followed, by its weights; others see English") func acceptance() {
        #expect(Language(accepting: nil) == .english)
        #expect(Language(accepting: "zh-CN,zh;q=0.9,en;q=0.8") == .chinese)
        #expect(Language(accepting: "de, en;q=0.4, zh;q=0.5") == .chinese)
        #expect(Language(accepting: "fr-FR") == .english)
        #expect(Language(accepting: "en-GB,zh") == .english)
        #expect(Language(accepting: "zh;q=0,en;q=0.1") == .english)
    }
}
