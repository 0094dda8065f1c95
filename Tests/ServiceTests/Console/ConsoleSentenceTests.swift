import Foundation
import SyncModel
import TestSupport
import Testing

@testable import Console

@Suite("Console: texts of other modules in both languages") struct ConsoleSentenceTests {
    @Test("C11: every API call, its members and its roles are described in Chinese too")
    func descriptions() {
        for route in ConsoleRoutes.all where route.isAPI {
            #expect(SentenceTranslations.translation(of: route.summary) != nil, "\(route.summary)")
            #expect(SentenceTranslations.translation(of: route.access.words) != nil, "\(route.access.words)")
            for input in route.inputs + route.queries {
                #expect(SentenceTranslations.translation(of: input.words) != nil, "\(input.words)")
            }
        }
    }

    @Test("names and numbers in a sentence stay; unknown sentences are shown unchanged") func holes() {
        #expect(
            SentenceTranslations.text("key k7 is sealed with a master key that is not here", in: .chinese).contains(
                "k7"))
        #expect(
            SentenceTranslations.text("appMinVersion is missing; send it.", in: .chinese) == "缺少 appMinVersion，请提供。")
        #expect(SentenceTranslations.text("there is no such key", in: .chinese) == "没有该密钥")
        #expect(SentenceTranslations.text("there is no such key", in: .english) == "there is no such key")
        #expect(SentenceTranslations.text("of tomorrow", in: .chinese) == "of tomorrow")
        #expect(
            SentenceTranslations.text(DeliveryState.expired.sentence, in: .chinese)
                == PageTexts.of(.chinese).text("state.EXPIRED"))
    }

    @Test("both sides of a sentence have the same holes, one at the most, and no Chinese one is English")
    func pairs() {
        for (english, chinese) in SentenceTranslations.file {
            let holes = english.count { $0 == "%" }
            #expect(holes <= 1 && chinese.count { $0 == "%" } == holes, "\(english)")
            #expect(english.hasPrefix("<") || chinese.unicodeScalars.contains { (0x4e00...0x9fff).contains($0.value) })
        }
    }

    @Test("C3, C8: every refusal that the store, the model or the validator writes has its Chinese sentence")
    func refusals() throws {
        let root = ProjectFolder.url
        // The literals after these words are answer texts.
        let places: [(file: String, sentence: Regex<(Substring, Substring)>)] = [
            (
                "Services/OplogWriter/Commands/ControlHandler.swift",
                #/(?:refusal|unless|unless:) ?=? ?"((?:[^"\\]|\\.)+)"/#
            ),
            (
                "Services/OplogWriter/Commands/ControlHandler+Keys.swift",
                #/(?:refusal|unless:) ?=? ?"((?:[^"\\]|\\.)+)"/#
            ),
            ("Shared/Model/SyncModel/Control/SyncConfiguration.swift", #/return "((?:[^"\\]|\\.)+)"/#),
            ("Shared/Model/SyncModel/Control/RolloutOutcome.swift", #/case \.[a-z]+:\s*"((?:[^"\\]|\\.)+)"/#),
            ("Shared/Model/SyncModel/Control/RolloutPlan.swift", #/return "(th(?:[^"\\]|\\.)+)"/#),
            ("Shared/Model/SyncModel/Control/Instance.swift", #/return "((?:[^"\\]|\\.)+)"/#),
            ("Services/SessionValidator/InFlightCalls.swift", #/\.unknown\("((?:[^"\\]|\\.)+)"/#),
            ("Services/SessionValidator/TenantAnswer.swift", #/(?:unknown|invalid)\("((?:[^"\\]|\\.)+)"/#),
            ("Services/SessionValidator/SessionCheckConsumer.swift", #/Refusal\(reason: "((?:[^"\\]|\\.)+)"/#),
            ("Shared/Server/BackendCalls/Push/PushRequest+Reading.swift", #/refused\(\s*"((?:[^"\\]|\\.)+)"/#),
        ]
        for place in places {
            let source = try String(contentsOf: root.appending(path: place.file), encoding: .utf8)
            let found = source.matches(of: place.sentence).map { String($0.output.1) }
            #expect(!found.isEmpty, "\(place.file)")
            for literal in found where Self.mayReachAPerson(literal) {
                let sentence = Self.filled(literal)
                #expect(SentenceTranslations.translation(of: sentence) != nil, "\(place.file): \(sentence)")
            }
        }
    }

    /// Whether a literal can reach a person. The console builds the JSON and the times of its calls itself.
    private static func mayReachAPerson(_ literal: String) -> Bool {
        !["validTimeEnd ", "payload is a number", "every line"].contains(where: literal.hasPrefix)
    }

    /// A literal with filled placeholders: limits have their values, all others are a name.
    private static func filled(_ literal: String) -> String {
        let values = [
            "Limits.linkTokenUnits": "\(Limits.linkTokenUnits)", "Limits.bizTypeUnits": "\(Limits.bizTypeUnits)",
            "Limits.retention.components.seconds / 86_400": "30", "Limits.sessionUnits": "\(Limits.sessionUnits)",
            "Limits.longestSessionUnits": "\(Limits.longestSessionUnits)", "Limits.liveKeys": "\(Limits.liveKeys)",
            "maximumUnits": "100", "name": "app id",
        ]
        return literal.replacing(#/\\\(([^)]*)\)/#) { values[String($0.output.1)] ?? "x1" }
            .replacing("\\\"", with: "\"")
    }
}
