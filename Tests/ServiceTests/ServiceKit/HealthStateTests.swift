import Testing

@testable import ServiceKit

@Suite("Health")
struct HealthStateTests {
    @Test("ready means that every named condition holds")
    func conditions() {
        let health = HealthState()
        health.set("amqp", isReady: true)
        #expect(health.readiness.isReady)
        health.set("control", isReady: false)
        #expect(!health.readiness.isReady && health.readiness.conditions == ["amqp": true, "control": false])
        health.set("control", isReady: true)
        #expect(health.readiness.isReady)
    }

    @Test("draining ends readiness for good, with any conditions")
    func draining() {
        let health = HealthState()
        health.set("amqp", isReady: true)
        #expect(!health.isDraining)
        health.drain()
        health.set("amqp", isReady: true)
        #expect(health.isDraining && !health.readiness.isReady)
    }
}
