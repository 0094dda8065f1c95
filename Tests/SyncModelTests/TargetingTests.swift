import SyncModel
import Testing

@Suite("D12: targeting by system and version")
struct TargetingTests {
    @Test(
        "versions compare part by part as integers, a missing part counting as 0",
        arguments: [
            ("1.2", "1.10", true), ("1.10", "1.2", false), ("1", "1.0.0", false), ("1.0.0", "1", false),
            ("01.2", "1.3", true), ("9", "10", true), ("1.99999999999999999999", "2", true), ("2.0.1", "2", false),
        ])
    func comparesVersions(left: String, right: String, isLess: Bool) throws {
        let (left, right) = (try #require(AppVersion(left)), try #require(AppVersion(right)))
        #expect((left < right) == isLess)
    }

    @Test(
        "a version is digits and dots only",
        arguments: ["", ".", "1.", ".1", "1..2", "1.a", "v1", "1.2-beta", " 1", "１"])
    func refusesOtherForms(text: String) { #expect(AppVersion(text) == nil) }

    @Test("bounds are inclusive, and a version of another form matches no bounded range")
    func excludes() {
        let targeting = Targeting(minimumVersion: "1.2", maximumVersion: "2.0")
        func reason(_ version: String) -> SkipReason? {
            targeting.exclusion(
                of: DeviceTraits(operatingSystem: .iOS, appVersion: version, slot: DeviceSlot(number: 0)))
        }
        #expect(reason("1.2") == nil)
        #expect(reason("1.2.0") == nil)
        #expect(reason("2.0") == nil)
        #expect(reason("1.1.9") == .version)
        #expect(reason("2.0.1") == .version)
        #expect(reason("dev") == .version)
        #expect(
            Targeting.everyone.exclusion(
                of: DeviceTraits(operatingSystem: nil, appVersion: "dev", slot: DeviceSlot(number: 0))) == nil)
    }

    @Test("a device of another system matches only unrestricted oplogs")
    func excludesSystems() {
        let device = DeviceTraits(
            operatingSystem: OperatingSystem(name: "HarmonyOS"), appVersion: "1", slot: DeviceSlot(number: 0))
        #expect(Targeting(operatingSystem: .iOS).exclusion(of: device) == .operatingSystem)
        #expect(OperatingSystem(name: "ANDROID") == .android)
        #expect(OperatingSystem(name: "ios") == .iOS)
    }
}

@Suite("Identifiers")
struct IdentifierTests {
    @Test("SEC10: texts that look alike are not the same, nor are users, sessions or targets with them")
    func bytes() {
        let pairs = [("é", "e\u{301}"), ("K", "\u{212A}"), ("Å", "\u{212B}")]
        for (one, other) in pairs {
            #expect(one == other, "which is why")
            #expect(UserID(one) != UserID(other) && SessionID(one) != SessionID(other))
            #expect(Set([BizType(one), BizType(other), BizType(one)]).count == 2)
            let targets = [one, other].map {
                TargetAddress(instanceID: InstanceID("i"), kind: .user, target: $0)
            }
            #expect(Set(targets).count == 2 && targets[0] == targets[0])
        }
    }
}
