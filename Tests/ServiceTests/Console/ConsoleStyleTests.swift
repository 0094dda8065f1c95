import Foundation
import Testing

@testable import Console

@Suite("Console: the palette") struct ConsoleStyleTests {
    /// The palette's colours in light and in dark, as red, green and blue from 0 to 1.
    private static let palette: [String: [[Double]]] = {
        let css = String(decoding: Asset.all["/assets/console.css"]?.bytes ?? [], as: UTF8.self)
        var palette: [String: [[Double]]] = [:]
        for match in css.matches(of: /--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/) {
            palette[String(match.1)] = [String(match.2), String(match.3)].map { colour in
                (0..<3).map { part in
                    let start = colour.index(colour.startIndex, offsetBy: 1 + part * 2)
                    let end = colour.index(start, offsetBy: 2)
                    return Double(UInt8(colour[start..<end], radix: 16) ?? 0) / 255
                }
            }
        }
        return palette
    }()

    /// WCAG 2.2, relative luminance.
    private func luminance(_ colour: [Double]) -> Double {
        let linear = colour.map { $0 <= 0.04045 ? $0 / 12.92 : pow(($0 + 0.055) / 1.055, 2.4) }
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    private func contrast(_ one: String, _ other: String, _ scheme: Int) throws -> Double {
        let found = [
            luminance(try #require(Self.palette[one])[scheme]), luminance(try #require(Self.palette[other])[scheme]),
        ].sorted()
        return (found[1] + 0.05) / (found[0] + 0.05)
    }

    @Test("every text is legible (4.5:1) and every control's border can be seen (3:1), in light and dark")
    func contrasts() throws {
        #expect(Self.palette.count >= 15)
        for scheme in 0...1 {
            for ground in ["ground", "sheet", "accent-ground"] {
                for text in ["text", "quiet", "accent", "bad"] {
                    #expect(try contrast(text, ground, scheme) >= 4.5, "\(text) on \(ground), \(scheme)")
                }
            }
            for state in ["good", "bad", "warn"] {
                #expect(try contrast(state, "\(state)-ground", scheme) >= 4.5, "\(state), \(scheme)")
            }
            #expect(try contrast("on-accent", "accent", scheme) >= 4.5)
            for ground in ["ground", "sheet", "accent-ground"] {
                #expect(try contrast("field", ground, scheme) >= 3, "field on \(ground), \(scheme)")
            }
            for line in ["accent", "series-2"] { #expect(try contrast(line, "sheet", scheme) >= 3) }
        }
    }

    @Test("there is one palette, and the borders of controls are visible") func once() {
        let css = String(decoding: Asset.all["/assets/console.css"]?.bytes ?? [], as: UTF8.self)
        #expect(css.matches(of: /--ground:/).count == 1 && !css.contains("prefers-color-scheme"))
        let buttons = css.split(separator: "button, .button {").last?.prefix { $0 != "}" } ?? ""
        #expect(buttons.contains("border: 1px solid var(--field)"))
    }
}
