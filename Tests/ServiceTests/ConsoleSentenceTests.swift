import Foundation
import SyncModel
import Testing

@testable import Console

@Suite("Console: sentences of others in both languages") struct ConsoleSentenceTests {
    @Test("C11: every call of the API, its members and who may make it are described in Chinese as well")
    func descriptions() {
        for route in ConsoleRoutes.all where route.isAPI {
            #expect(Sentences.translation(of: route.summary) != nil, "\(route.summary)")
            #expect(Sentences.translation(of: route.access.words) != nil, "\(route.access.words)")
            for input in route.inputs + route.queries {
                #expect(Sentences.translation(of: input.words) != nil, "\(input.words)")
            }
        }
    }

    @Test("a name or number within a sentence stays; what is not known is shown as it came") func holes() {
        #expect(Sentences.text("key k7 is sealed with a master key that is not here", in: .chinese).contains("k7"))
        #expect(Sentences.text("appMinVersion is missing; send it.", in: .chinese) == "缺少 appMinVersion，请提供。")
        #expect(Sentences.text("there is no such key", in: .chinese) == "没有该密钥")
        #expect(Sentences.text("there is no such key", in: .english) == "there is no such key")
        #expect(Sentences.text("of tomorrow", in: .chinese) == "of tomorrow")
        #expect(
            Sentences.text(DeliveryState.expired.sentence, in: .chinese) == Words.of(.chinese).text("state.EXPIRED"))
    }

    @Test("both sides of a sentence have the same holes, one at the most, and no Chinese one is English")
    func pairs() {
        for (english, chinese) in Sentences.file {
            let holes = english.count { $0 == "%" }
            #expect(holes <= 1 && chinese.count { $0 == "%" } == holes, "\(english)")
            #expect(english.hasPrefix("<") || chinese.unicodeScalars.contains { (0x4e00...0x9fff).contains($0.value) })
        }
    }

    @Test("C3, C8: every refusal that the store, the model or the validator writes has its Chinese sentence")
    func refusals() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        // Literals after these words are what is answered.
        let places: [(file: String, sentence: Regex<(Substring, Substring)>)] = [
            ("Services/OplogWriter/ControlWork.swift", #/(?:refusal|unless|unless:) ?=? ?"((?:[^"\\]|\\.)+)"/#),
            ("Services/OplogWriter/ControlWork+Keys.swift", #/(?:refusal|unless:) ?=? ?"((?:[^"\\]|\\.)+)"/#),
            ("Shared/SyncModel/SyncConfiguration.swift", #/return "((?:[^"\\]|\\.)+)"/#),
            ("Shared/SyncModel/RolloutOutcome.swift", #/case \.[a-z]+:\s*"((?:[^"\\]|\\.)+)"/#),
            ("Shared/SyncModel/RolloutPlan.swift", #/return "(th(?:[^"\\]|\\.)+)"/#),
            ("Shared/SyncModel/Instance.swift", #/return "((?:[^"\\]|\\.)+)"/#),
            ("Shared/SyncModel/ValidatorForm.swift", #/return "((?:[^"\\]|\\.)+)"/#),
            ("Services/SessionValidator/InFlightCalls.swift", #/\.unknown\("((?:[^"\\]|\\.)+)"/#),
            ("Services/SessionValidator/TenantAnswer.swift", #/(?:unknown|invalid)\("((?:[^"\\]|\\.)+)"/#),
            ("Services/SessionValidator/SessionCheckConsumer.swift", #/Refusal\(reason: "((?:[^"\\]|\\.)+)"/#),
            ("Shared/BackendCalls/PushRequest+Reading.swift", #/refused\(\s*"((?:[^"\\]|\\.)+)"/#),
        ]
        for place in places {
            let source = try String(contentsOf: root.appending(path: place.file), encoding: .utf8)
            let found = source.matches(of: place.sentence).map { String($0.output.1) }
            #expect(!found.isEmpty, "\(place.file)")
            for literal in found where Self.mayReachAPerson(literal) {
                let sentence = Self.filled(literal)
                #expect(Sentences.translation(of: sentence) != nil, "\(place.file): \(sentence)")
            }
        }
    }

    /// The console makes the JSON and the times of its calls itself.
    private static func mayReachAPerson(_ literal: String) -> Bool {
        !["validTimeEnd ", "payload is a number", "every line"].contains(where: literal.hasPrefix)
    }

    /// A literal with what is put into it: limits as they are, anything else as a name.
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
