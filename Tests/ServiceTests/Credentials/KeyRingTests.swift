import Credentials
import Crypto
import SyncModel
import Testing

@Suite("Key ring")
struct KeyRingTests {
    private let old = "2026-01 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    private let new = "2026-11 ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
    private let address = KeyAddress(instanceID: InstanceID("demo_app"), keyID: "k1", purpose: .backend)

    @Test("SEC16: a sealed secret opens only with its own key, and not after a change of a bit")
    func sealing() throws {
        let ring = try KeyRing(text: old)
        let sealed = try #require(ring.seal([1, 2, 3], of: address))
        #expect(ring.open(sealed, of: address)?.withUnsafeBytes { Array($0) } == [1, 2, 3])
        let others = [
            KeyAddress(instanceID: InstanceID("demo_app2"), keyID: "k1", purpose: .backend),
            KeyAddress(instanceID: InstanceID("demo_app"), keyID: "k2", purpose: .backend),
            KeyAddress(instanceID: InstanceID("demo_app"), keyID: "k1", purpose: .device),
            KeyAddress(instanceID: InstanceID("demo_ap"), keyID: "pk1", purpose: .backend),
        ]
        for other in others { #expect(ring.open(sealed, of: other) == nil) }
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(ring.open(changed, of: address) == nil)
            #expect(ring.open(Array(sealed[..<index]), of: address) == nil)
        }
        #expect(!String(decoding: sealed, as: UTF8.self).contains("\u{1}\u{2}\u{3}"))
    }

    @Test("SEC16: a rotation opens old secrets, seals with the new key, and tells the two apart")
    func rotation() throws {
        let before = try KeyRing(text: old)
        let during = try KeyRing(text: "# newest first\n\(new)\n\(old)\n")
        let after = try KeyRing(text: new)
        let sealed = try #require(before.seal([9], of: address))
        #expect(!during.isCurrent(sealed))
        #expect(during.open(sealed, of: address) != nil)
        #expect(after.open(sealed, of: address) == nil)
        let resealed = try #require(during.seal([9], of: address))
        #expect(during.isCurrent(resealed))
        #expect(after.open(resealed, of: address) != nil)
        #expect(KeyRing.empty.seal([9], of: address) == nil)
    }

    @Test(
        "SEC16: the ring of a purpose opens no secrets of another purpose",
        arguments: AppKey.Purpose.allCases)
    func purposes(own: AppKey.Purpose) throws {
        let masters = try KeyRing(text: "\(new)\n\(old)")
        // The ring as a process parses it.
        let ring = try SealingRing(text: masters.sealing(for: own).text, for: own)
        for purpose in AppKey.Purpose.allCases {
            let address = KeyAddress(instanceID: InstanceID("demo_app"), keyID: "k1", purpose: purpose)
            for sealer in [masters, try KeyRing(text: old)] {
                let sealed = try #require(sealer.seal([9], of: address))
                #expect(masters.open(sealed, of: address) != nil)
                #expect((ring.open(sealed, of: address) != nil) == (purpose == own), "\(purpose) with \(own)")
            }
        }
    }

    @Test("SEC16: no process reads another purpose's ring as its own, nor the master keys")
    func foreignRings() throws {
        let masters = try KeyRing(text: "\(new)\n\(old)")
        let purposes = AppKey.Purpose.allCases
        for (ring, reader) in purposes.flatMap({ ring in purposes.map { (ring, $0) } }) where ring != reader {
            #expect(throws: KeyRing.Fault.self) { try SealingRing(text: masters.sealing(for: ring).text, for: reader) }
        }
        for purpose in purposes {
            let text = masters.sealing(for: purpose).text
            #expect(throws: KeyRing.Fault.self) { try SealingRing(text: "\(new)\n\(old)", for: purpose) }
            #expect(throws: KeyRing.Fault.self) { try KeyRing(text: text) }
            let secrets = "\(new) \(old)".split(separator: " ").filter { $0.count > 40 }
            #expect(secrets.count == 2 && !secrets.contains { text.contains($0) })
        }
    }

    @Test(
        "A key ring that cannot be parsed names the line, without its content",
        arguments: [
            "", "# nothing", "a", "a b c", "A AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "a AAEC",
            "seventeen-letters AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        ])
    func faults(text: String) {
        #expect { try KeyRing(text: text) } throws: { error in
            !text.split(separator: " ").contains { $0.count > 3 && "\(error)".contains($0) }
        }
    }

    @Test("Hex texts are parsed, and other texts are refused")
    func hex() {
        #expect(HexText.of([0, 9, 10, 255]) == "00090aff")
        #expect(HexText.bytes(of: "00090AfF") == [0, 9, 10, 255])
        for text in ["0", "0g", "é0", " 0"] { #expect(HexText.bytes(of: text) == nil) }
    }
}
