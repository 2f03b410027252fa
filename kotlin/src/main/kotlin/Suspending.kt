// The calls that block, for coroutines: each runs on a thread of its own, so that it holds up no dispatcher, and goes on where its
// caller was. A coroutine that is cancelled waits for the end of the call, which its timeout bounds.
package org.example.ldpbayes

import kotlin.concurrent.thread
import kotlin.coroutines.suspendCoroutine
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

private val ASKING_WAIT = ASKING_MILLIS.milliseconds

private suspend fun <T> awaited(work: () -> T): T = suspendCoroutine { continuation ->
    thread(isDaemon = true, name = "ldp-bayes-await") { continuation.resumeWith(runCatching(work)) }
}

/** As [DeviceCampaign.nextStep]. */
suspend fun DeviceCampaign.awaitNextStep(timeout: Duration = ASKING_WAIT): NextStep = awaited { nextStep(timeout) }

/** As [DeviceCampaign.decide]. */
suspend fun DeviceCampaign.awaitDecide(agreed: Boolean, timeout: Duration = ASKING_WAIT): NextStep = awaited { decide(agreed, timeout) }

/** As [DeviceCampaign.contribute]. */
suspend fun DeviceCampaign.awaitContribute(record: Map<String, Any?>, label: Any? = null): Contribution =
    awaited { contribute(record, label) }

/** As [DeviceCampaign.withdraw]. */
suspend fun DeviceCampaign.awaitWithdraw(): Withdrawal = awaited { withdraw() }

/** As [DeviceCampaign.fetch]. */
suspend fun DeviceCampaign.awaitFetch(timeout: Duration = ASKING_WAIT): Campaign = awaited { fetch(timeout) }

/** As [DeviceCampaign.classifier]. */
suspend fun DeviceCampaign.awaitClassifier(timeout: Duration = ASKING_WAIT): Classifier = awaited { classifier(timeout) }

/** As [Device.runOnce]. */
suspend fun Device.awaitRunOnce(timeout: Duration = 10.seconds, firstDelay: Duration = Duration.ZERO): Boolean =
    awaited { runOnce(timeout, firstDelay) }
