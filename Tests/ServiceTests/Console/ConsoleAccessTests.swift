import Foundation
import SyncModel
import Testing

@testable import Console

@Suite("Console: passwords, second factors, roles") struct ConsoleAccessTests {
    @Test("SEC14: the codes of RFC 6238 (appendix B, SHA-1), each of its own half minute") func codes() {
        let secret = Array("12345678901234567890".utf8)
        for (time, code) in [
            (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (1_234_567_890, "005924"),
            (2_000_000_000, "279037"), (20_000_000_000, "353130"),
        ] as [(Int64, String)] {
            #expect(TimeCode.code(secret, step: time / 30) == code)
            #expect(TimeCode.step(of: code, secret: secret, at: time) == time / 30)
            #expect(TimeCode.step(of: "\(code.prefix(3)) \(code.suffix(3))", secret: secret, at: time) == time / 30)
            for late in [-30, 30] as [Int64] {
                #expect(TimeCode.step(of: code, secret: secret, at: time + late) == time / 30)
            }
            #expect(TimeCode.step(of: code, secret: secret, at: time + 90) == nil)
        }
        #expect(TimeCode.text(of: Array("foobar".utf8)) == "MZXW6YTBOI", "RFC 4648, section 10")
        #expect(TimeCode.text(of: Array("foob".utf8)) == "MZXW6YQ")
    }

    @Test("SEC14: a password is known by its hash, another one is not, and each hash has its own salt")
    func hashes() async throws {
        let hashes = PasswordHash()
        let hash = await hashes.make("correct horse")
        let another = await hashes.make("correct horse")
        #expect(hash.hasPrefix("scrypt$15$") && hash != another)
        for (password, against, isRight) in [
            ("correct horse", hash, true), ("correct horsf", hash, false), ("correct horse", nil, false),
            ("correct horse", "scrypt$14$00$00", false),
        ] as [(String, String?, Bool)] {
            let found = await hashes.check(password, against: against)
            #expect(found == isRight)
        }
    }

    @Test("SEC16: a second factor's secret opens with its key and for its account alone") func seals() throws {
        let key = Data(repeating: 7, count: 32).base64EncodedString()
        let seal = try #require(SecondFactorSeal(text: key))
        let sealed = try #require(seal.seal([1, 2, 3], of: "alice"))
        #expect(seal.open(sealed, of: "alice") == [1, 2, 3])
        #expect(seal.open(sealed, of: "bob") == nil)
        let other = try #require(SecondFactorSeal(text: Data(repeating: 8, count: 32).base64EncodedString()))
        #expect(other.open(sealed, of: "alice") == nil)
        #expect(SecondFactorSeal(text: "short") == nil)
    }

    @Test("a role at every instance counts at each; the higher of two counts") func roles() {
        let account = ConsoleAccount(
            name: "a", grants: [ConsoleAccount.everyInstance: .viewer, InstanceID("x"): .operations])
        #expect(account.role(at: InstanceID("x")) == .operations)
        #expect(account.role(at: InstanceID("y")) == .viewer)
        #expect(ConsoleAccount(name: "a", grants: [InstanceID("x"): .viewer]).role(at: InstanceID("y")) == nil)
        #expect(ConsoleAccount(name: "a b", grants: [InstanceID("x"): .viewer]).fault != nil)
        #expect(ConsoleAccount(name: "a", grants: [:]).fault != nil)
        #expect(ConsoleAccount(name: "alice@bank.example", grants: [InstanceID("x"): .viewer]).fault == nil)
    }
}
